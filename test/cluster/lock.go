// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// errLocked says that another process, or another part of this one, holds a lock.
var errLocked = errors.New("locked by another process")

// lockFile is an advisory lock that the kernel drops when its holder dies, however it dies.
type lockFile struct{ f *os.File }

// tryLock takes the lock at path, or returns errLocked at once.
func tryLock(path string) (*lockFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening lock file: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return &lockFile{f}, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("%s: %w", path, errLocked)
	}
	return nil, fmt.Errorf("locking %s: %w", path, err)
}

// locked says whether somebody holds the lock at path. It makes no file: where there is none, nobody does.
func locked(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// lock takes the lock at path, waiting for it as long as ctx lives. waiting is
// called once if another holds it.
func lock(ctx context.Context, path string, waiting func()) (*lockFile, error) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		l, err := tryLock(path)
		if !errors.Is(err, errLocked) {
			return l, err
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for lock %s: %w", path, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}

func (l *lockFile) unlock() {
	if l != nil {
		_ = l.f.Close()
	}
}
