// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// port is a port of the loopback that stays ours while nobody listens on it: then the kernel refuses connections,
// as it does where no program runs. It is a socket that is bound and never listens, beside one that does.
type port struct {
	number  int
	reserve int // a file descriptor
}

// newPort reserves a free port.
func newPort() (*port, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("reserving a port: %w", os.NewSyscallError("socket", err))
	}
	p := &port{reserve: fd}
	if err := p.bind(); err != nil {
		p.release()
		return nil, fmt.Errorf("reserving a port: %w", err)
	}
	return p, nil
}

func (p *port) bind() error {
	if err := share(p.reserve); err != nil {
		return err
	}
	if err := unix.Bind(p.reserve, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return os.NewSyscallError("bind", err)
	}
	name, err := unix.Getsockname(p.reserve)
	if err != nil {
		return os.NewSyscallError("getsockname", err)
	}
	p.number = name.(*unix.SockaddrInet4).Port
	return nil
}

// share lets two sockets of one user be bound to one port.
func share(fd int) error {
	return os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
}

func (p *port) addr() string { return fmt.Sprintf("127.0.0.1:%d", p.number) }

// listen lets connections in.
func (p *port) listen() (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var shared error
		err := c.Control(func(fd uintptr) { shared = share(int(fd)) })
		return errors.Join(err, shared)
	}}
	return config.Listen(context.Background(), "tcp", p.addr())
}

func (p *port) release() { _ = unix.Close(p.reserve) }
