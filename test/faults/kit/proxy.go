// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"net"
	"sync"
	"time"
)

// Proxy stands on a connection and lets it be disturbed. It passes bytes on and understands none. Its methods are
// safe for concurrent use.
type Proxy struct {
	target string
	port   *port
	all    sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener // nil while connections are refused
	links    map[*link]bool
	delay    time.Duration // in each direction
	open     chan struct{} // closed while bytes pass
}

// link is one connection, both halves of it.
type link struct {
	near, far net.Conn
	once      sync.Once
	done      chan struct{}
}

// Listen makes a proxy to an address on a free port of the loopback.
func Listen(target string) (*Proxy, error) {
	port, err := newPort()
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, port: port, links: map[*link]bool{}, open: make(chan struct{})}
	close(p.open)
	if err := p.Pass(); err != nil {
		port.release()
		return nil, err
	}
	return p, nil
}

// Addr returns where the proxy listens, as host:port.
func (p *Proxy) Addr() string { return p.port.addr() }

// Port returns where the proxy listens on the loopback.
func (p *Proxy) Port() int { return p.port.number }

// Close ends the proxy and all connections.
func (p *Proxy) Close() {
	p.Refuse()
	p.all.Wait()
	p.port.release()
}

// Cut ends all connections, and says how many there were. New ones are accepted.
func (p *Proxy) Cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.links)
	for l := range p.links {
		l.end()
	}
	clear(p.links)
	return n
}

// Refuse ends all connections, and lets the kernel refuse new ones, until Pass.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	p.mu.Unlock()
	p.Cut()
}

// Silence lets nothing through, and ends no connection, until Pass: neither side can tell it from a long way.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
		p.open = make(chan struct{})
	default: // silent already
	}
}

// Delay holds up each answer by d: half of it on the way there, half on the way back.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d / 2
}

// Pass ends whatever disturbs. What was held up arrives. Errors: that of listening again.
func (p *Proxy) Pass() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = 0
	select {
	case <-p.open:
	default:
		close(p.open)
	}
	if p.listener != nil {
		return nil
	}
	l, err := p.port.listen()
	if err != nil {
		return fmt.Errorf("listening for a proxy to %s: %w", p.target, err)
	}
	p.listener = l
	p.all.Go(func() { p.accept(l) })
	return nil
}

func (p *Proxy) accept(l net.Listener) {
	for {
		near, err := l.Accept()
		if err != nil {
			return // closed
		}
		p.all.Go(func() { p.serve(l, near) })
	}
}

// serve passes on one connection, that came through from, until either side, or the proxy, ends it.
func (p *Proxy) serve(from net.Listener, near net.Conn) {
	far, err := net.Dial("tcp", p.target) //nolint:noctx // on this machine it is refused at once or not at all
	if err != nil {
		_ = near.Close()
		return
	}
	l := &link{near: near, far: far, done: make(chan struct{})}
	defer l.end()
	p.mu.Lock()
	if p.listener != from { // it has been closed since
		p.mu.Unlock()
		return
	}
	p.links[l] = true
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.pump(l, near, far) })
	both.Go(func() { p.pump(l, far, near) })
	both.Wait()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// end closes both halves; what is on its way is lost.
func (l *link) end() {
	l.once.Do(func() {
		close(l.done)
		_ = l.near.Close()
		_ = l.far.Close()
	})
}

// piece is what was read at once, and when it may be passed on.
type piece struct {
	bytes []byte
	due   time.Time
}

// pump passes on one direction. It reads on while earlier pieces are held up, so that a delay does not narrow the
// way.
func (p *Proxy) pump(l *link, from, to net.Conn) {
	defer l.end()
	pieces := make(chan piece, 1024)
	go func() {
		defer close(pieces)
		for {
			buffer := make([]byte, 32<<10)
			n, err := from.Read(buffer)
			if n > 0 {
				select {
				case pieces <- piece{buffer[:n], time.Now().Add(p.held())}:
				case <-l.done:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	for one := range pieces {
		if !p.await(l, one.due) {
			return
		}
		if _, err := to.Write(one.bytes); err != nil {
			return
		}
	}
}

func (p *Proxy) held() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delay
}

// await returns when a piece may be passed on; false if the connection has ended by then.
func (p *Proxy) await(l *link, due time.Time) bool {
	if d := time.Until(due); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.done:
			return false
		}
	}
	p.mu.Lock()
	open := p.open
	p.mu.Unlock()
	select {
	case <-open:
		return true
	case <-l.done:
		return false
	}
}
