// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"github.com/nodemaint/nodemaint/test/cluster"
)

// usage is what the processes of a contender used.
type usage struct {
	peak  uint64 // bytes resident; of several processes, the sum of their peaks
	files uint64 // of them pages of files, the program's own, when it was last asked; zero of several processes
	cpu   time.Duration
}

// peakOf returns the most memory that a running process has had resident. What wait4 tells of an ended one
// will not do: there Linux counts in what the parent had resident when it made the process.
func peakOf(pid int) (uint64, error) {
	used, err := memoryOf(pid)
	return used.peak, err
}

// memoryOf returns what peakOf does, and how much of the memory that is resident now the kernel can take away
// without a loss: the pages of files.
func memoryOf(pid int) (usage, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return usage{}, err
	}
	status, err := p.NewStatus()
	if err != nil {
		return usage{}, err
	}
	return usage{peak: status.VmHWM, files: status.RssFile}, nil
}

// cpuOf returns the CPU time that an ended process used, from what wait4 tells.
func cpuOf(sys any) time.Duration {
	ru, ok := sys.(*syscall.Rusage)
	if !ok {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// cpuSoFar returns the CPU time that a running process has used, to a hundredth of a second.
func cpuSoFar(pid int) (time.Duration, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	stat, err := p.Stat()
	if err != nil {
		return 0, err
	}
	return time.Duration(stat.CPUTime() * float64(time.Second)), nil
}

// peaks reads the peak memory of processes over and over: one that ends by itself cannot be asked at its end.
type peaks struct {
	stop chan struct{}
	all  sync.WaitGroup
	of   map[int]uint64 // by process id
}

// watchPeaks begins to read.
func watchPeaks(pids []int) *peaks {
	p := &peaks{stop: make(chan struct{}), of: map[int]uint64{}}
	p.all.Go(func() {
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for {
			for _, pid := range pids {
				if n, err := peakOf(pid); err == nil { // else it has ended
					p.of[pid] = max(p.of[pid], n)
				}
			}
			select {
			case <-ticker.C:
			case <-p.stop:
				return
			}
		}
	})
	return p
}

// sum ends the reading and returns the sum of the peaks of so many processes.
func (p *peaks) sum(processes int) (uint64, error) {
	close(p.stop)
	p.all.Wait()
	var out uint64
	seen := 0
	for _, n := range p.of {
		if out += n; n > 0 {
			seen++
		}
	}
	if seen < processes {
		return out, fmt.Errorf("%d of %d processes: %w", processes-seen, processes, errUnseen)
	}
	return out, nil
}

var errUnseen = errors.New("peak memory could not be read from /proc while they ran")

// clusterCPU is the CPU time that the parts of a cluster have used.
type clusterCPU map[cluster.Component]time.Duration

func (s *stage) clusterCPU() (clusterCPU, error) {
	out := clusterCPU{}
	for _, part := range s.Cluster.State().Parts {
		used, err := cpuSoFar(part.PID)
		if err != nil {
			return nil, fmt.Errorf("reading the CPU time of %s: %w", part.Component, err)
		}
		out[part.Component] = used
	}
	return out, nil
}

func (c clusterCPU) since(before clusterCPU) clusterCPU {
	out := clusterCPU{}
	for part, used := range c {
		out[part] = used - before[part]
	}
	return out
}

// each returns what each part used.
func (c clusterCPU) each() string {
	var out []string
	for _, part := range slices.Sorted(maps.Keys(c)) {
		out = append(out, fmt.Sprintf("%s %s", part, seconds(c[part])))
	}
	return strings.Join(out, ", ")
}

// sum is what all parts used.
func (c clusterCPU) sum() time.Duration {
	var sum time.Duration
	for _, used := range c {
		sum += used
	}
	return sum
}

// String returns the sum, and of it the API server's.
func (c clusterCPU) String() string {
	return fmt.Sprintf("%s, %.1f", seconds(c.sum()), c[cluster.APIServer].Seconds())
}
