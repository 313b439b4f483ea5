// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// failedFor is how long the folder of a failed start stays, so that its logs can be read.
const failedFor = 24 * time.Hour

// runDir is where the folders of clusters without Options.Dir lie.
func runDir() (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "run"), nil
}

// claimFolder makes the folder of a new cluster and takes its lock, which is how
// others know that its owner lives. In the shared run folder it first removes what
// dead owners left, under a lock of its own so that nobody removes a folder that is
// just being made.
func claimFolder(ctx context.Context, o Options) (layout, *lockFile, error) {
	if o.Dir != "" {
		return claimOwn(o.Dir)
	}
	run, err := runDir()
	if err != nil {
		return layout{}, nil, err
	}
	if err := os.MkdirAll(run, 0o700); err != nil {
		return layout{}, nil, fmt.Errorf("making folder for clusters: %w", err)
	}
	guard, err := lock(ctx, filepath.Join(run, ".lock"), nil)
	if err != nil {
		return layout{}, nil, err
	}
	defer guard.unlock()
	if err := sweep(run, time.Now()); err != nil {
		return layout{}, nil, err
	}
	if o.Name == "" {
		dir, err := os.MkdirTemp(run, "cluster-")
		if err != nil {
			return layout{}, nil, fmt.Errorf("making folder for a cluster: %w", err)
		}
		return lockFolder(layout{dir})
	}
	return claimNamed(layout{filepath.Join(run, o.Name)}, o.Name)
}

// claimOwn takes a folder that the caller has named.
func claimOwn(dir string) (layout, *lockFile, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return layout{}, nil, fmt.Errorf("making folder for a cluster: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return layout{}, nil, fmt.Errorf("looking into folder for a cluster: %w", err)
	}
	if len(entries) > 0 {
		return layout{}, nil, fmt.Errorf("cluster folder %s is not empty; a cluster always starts fresh", dir)
	}
	return lockFolder(layout{dir})
}

// claimNamed takes a name, from a dead owner too.
func claimNamed(l layout, name string) (layout, *lockFile, error) {
	if _, err := os.Stat(l.dir); err == nil {
		held, err := tryLock(l.lock())
		if errors.Is(err, errLocked) {
			return layout{}, nil, fmt.Errorf("cluster %q is already running; stop it or choose another name", name)
		}
		if err != nil {
			return layout{}, nil, err
		}
		held.unlock()
		if err := l.remove(); err != nil {
			return layout{}, nil, fmt.Errorf("removing what an earlier cluster %q left: %w", name, err)
		}
	}
	if err := os.Mkdir(l.dir, 0o700); err != nil {
		return layout{}, nil, fmt.Errorf("making folder for cluster %q: %w", name, err)
	}
	return lockFolder(l)
}

func lockFolder(l layout) (layout, *lockFile, error) {
	held, err := tryLock(l.lock())
	if err != nil {
		return layout{}, nil, err
	}
	return l, held, nil
}

// sweep removes the folders in run whose owners are dead, but not those that a
// failed start left less than a day ago, nor those that were to be kept.
func sweep(run string, now time.Time) error {
	entries, err := os.ReadDir(run)
	if err != nil {
		return fmt.Errorf("looking for left-over clusters: %w", err)
	}
	for _, e := range entries {
		l := layout{filepath.Join(run, e.Name())}
		if !e.IsDir() || stays(l, now) {
			continue
		}
		held, err := tryLock(l.lock())
		if err != nil {
			continue // its owner lives
		}
		held.unlock()
		if err := l.remove(); err != nil {
			return fmt.Errorf("removing a left-over cluster: %w", err)
		}
	}
	return nil
}

func stays(l layout, now time.Time) bool {
	if s, err := readState(l.dir); err == nil && s.Keep {
		return true
	}
	info, err := os.Stat(l.failed())
	return err == nil && now.Sub(info.ModTime()) < failedFor
}

// remove removes the folder, its lock after all else: while that is held, the rest may still be there.
func (l layout) remove() error {
	entries, err := os.ReadDir(l.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if path := l.path(e.Name()); path != l.lock() {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(l.dir)
}
