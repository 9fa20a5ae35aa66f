//go:build unix

package workqueue

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"clustergym/internal/packed"
)

// BenchmarkOverhead measures what the queue adds to a task: a task that computes nothing, one after the other, by a
// worker in a process of its own.
func BenchmarkOverhead(b *testing.B) {
	c, _ := listen(b, Options{})
	spawnWorker(b, workerRole{URL: c.URL(), Name: "a"})
	do := func(i int) {
		if err := c.Do(b.Context(), square(i), nil, func(*Result) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	do(-1)
	i := 0
	for b.Loop() {
		do(i)
		i++
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/task")
}

// BenchmarkThroughput measures tasks of 1 ms on four slots, in two processes.
func BenchmarkThroughput(b *testing.B) {
	c, _ := listen(b, Options{})
	for i := range 2 {
		spawnWorker(b, workerRole{URL: c.URL(), Name: fmt.Sprint("w", i), Slots: 2})
	}
	until(b, "two workers", func() bool { return len(c.Status().Workers) == 2 })
	b.ResetTimer()
	before := processorTime(b)
	var wg sync.WaitGroup
	free := make(chan bool, 256) // ready at once, as cells of an experiment
	for i := range b.N {
		wg.Add(1)
		free <- true
		go func() {
			defer wg.Done()
			if err := c.Do(b.Context(), newTask("slow", fmt.Sprint(i), time.Millisecond), nil,
				func(*Result) error { return nil }); err != nil {
				b.Error(err)
			}
			<-free
		}()
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "coordinator-µs/task")
}

// processorTime is what this process has taken: the coordinator's, as the workers are other processes.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkIdleWorkers measures what 200 workers without tasks cost the coordinator, each with its message every second
// and its wish for a task every five.
func BenchmarkIdleWorkers(b *testing.B) {
	const workers = 200
	c, _ := listen(b, Options{})
	spawnWorker(b, workerRole{URL: c.URL(), Name: "w", Count: workers})
	until(b, "all workers", func() bool { return len(c.Status().Workers) == workers })
	time.Sleep(time.Second)
	b.ResetTimer()
	before := processorTime(b)
	for b.Loop() {
		time.Sleep(5 * time.Second)
	}
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/b.Elapsed().Seconds()/workers,
		"coordinator-µs/worker/s")
}

// BenchmarkHere measures what the queue adds to a task on the coordinator's machine, where no worker takes part.
func BenchmarkHere(b *testing.B) {
	c, _ := listen(b, Options{Here: 1, Workers: 1})
	i := 0
	for b.Loop() {
		if err := c.Do(b.Context(), square(i), func(_ context.Context, _ int) error { return nil }, nil); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

// random makes a folder of files of 1 MB that cannot be packed.
func random(b *testing.B, dir string, files int, salt int) {
	b.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		b.Fatal(err)
	}
	for i := range files {
		data := make([]byte, 0, 1<<20)
		for n := uint64(0); len(data) < 1<<20; n++ {
			sum := sha256.Sum256(binary.LittleEndian.AppendUint64(fmt.Appendf(nil, "%d %d ", salt, i), n))
			data = append(data, sum[:]...)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), data, 0o600); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPut measures a folder of 64 MB on its way into the store.
func BenchmarkPut(b *testing.B) {
	c, _ := listen(b, Options{})
	dir := b.TempDir()
	b.SetBytes(64 << 20)
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		random(b, dir, 64, n)
		b.StartTimer()
		d, err := c.Put(b.Context(), dir)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := c.store.remove(b.Context(), d); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkUnpack measures a folder of 64 MB on its way out of the store.
func BenchmarkUnpack(b *testing.B) {
	c, _ := listen(b, Options{})
	dir := b.TempDir()
	random(b, filepath.Join(dir, "in"), 64, 0)
	d, err := c.Put(b.Context(), filepath.Join(dir, "in"))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(64 << 20)
	for b.Loop() {
		if err := c.store.get(b.Context(), d, filepath.Join(dir, "out"), d, packed.Folder); err != nil {
			b.Fatal(err)
		}
	}
}
