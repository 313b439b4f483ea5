// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bufio"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// echo answers each connection with what it sends.
func echo(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

// caller is a connection through a proxy.
type caller struct {
	net.Conn
	in *bufio.Reader
}

func call(t *testing.T, p *Proxy) caller {
	c, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	return caller{c, bufio.NewReader(c)}
}

// ask sends a line and returns what comes back.
func (c caller) ask(line string) (string, error) {
	if _, err := c.Write([]byte(line + "\n")); err != nil {
		return "", err
	}
	return c.in.ReadString('\n')
}

func newProxy(t *testing.T) *Proxy {
	p, err := Listen(echo(t))
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

func requirePasses(t *testing.T, c caller) {
	t.Helper()
	answer, err := c.ask("hello")
	require.NoError(t, err)
	require.Equal(t, "hello\n", answer)
}

func requireEnded(t *testing.T, c caller) {
	t.Helper()
	_, err := c.ask("hello")
	require.Error(t, err)
}

func TestProxyCuts(t *testing.T) {
	p := newProxy(t)
	one, other := call(t, p), call(t, p)
	requirePasses(t, one)
	requirePasses(t, other)
	require.Equal(t, 2, p.Cut())
	requireEnded(t, one)
	requireEnded(t, other)
	requirePasses(t, call(t, p))
	require.Equal(t, 1, p.Cut(), "those that were cut are forgotten")
}

func TestProxyRefuses(t *testing.T) {
	p := newProxy(t)
	one := call(t, p)
	requirePasses(t, one)
	p.Refuse()
	requireEnded(t, one)
	for range 3 {
		_, err := net.Dial("tcp", p.Addr())
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	}
	require.NoError(t, p.Pass())
	requirePasses(t, call(t, p))
	require.NoError(t, p.Pass(), "again")
	requirePasses(t, call(t, p))
}

func TestProxyIsSilent(t *testing.T) {
	p := newProxy(t)
	c := call(t, p)
	requirePasses(t, c)
	p.Silence()
	p.Silence()
	_, err := c.Write([]byte("held up\n"))
	require.NoError(t, err)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err = c.in.Peek(1)
	require.ErrorContains(t, err, "timeout")
	require.NoError(t, p.Pass())
	require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
	answer, err := c.in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "held up\n", answer)
}

func TestProxyDelays(t *testing.T) {
	p := newProxy(t)
	c := call(t, p)
	requirePasses(t, c)
	const late = 100 * time.Millisecond
	p.Delay(late)
	began := time.Now()
	requirePasses(t, c)
	require.GreaterOrEqual(t, time.Since(began), late)
}

func TestProxyToNowhere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	p, err := Listen(l.Addr().String())
	require.NoError(t, err)
	defer p.Close()
	requireEnded(t, call(t, p))
}

func TestProxyClosesWhileSilent(t *testing.T) {
	p := newProxy(t)
	c := call(t, p)
	requirePasses(t, c)
	p.Silence()
	_, err := c.Write([]byte("lost\n"))
	require.NoError(t, err)
	p.Close()
	_, err = c.in.ReadString('\n')
	require.Error(t, err)
}
