package envs

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"clustergym/bridge/budget"
	"clustergym/lab/workload"
)

// loadsAtOnce is the maximum number of workloads loading at the same time: each takes a core and its memory.
const loadsAtOnce = 2

// What loading takes, in bytes, beyond which a workload is not read on without more being reserved.
const (
	jobLoading  = 1000    // a job, while slices grow and jobs are filtered into others
	leastRoom   = 1 << 20 // whatever is read
	fileLoading = 3       // each byte of a file, for readers that hold all of it
)

// workloadCache keeps the most recently used workloads and loads each once for all concurrent requests. What it keeps
// is reserved in the budget: workloads in use stay, and unused ones are dropped when they are more than limit bytes, or
// when the budget needs theirs.
type workloadCache struct {
	limit  int64
	loads  chan struct{}
	budget *budget.Budget // nil = no limit

	mu      sync.Mutex
	entries map[string]*worldEntry
	clock   int
}

type worldEntry struct {
	ready chan struct{} // closed when w or err is there
	w     *Workload
	err   error
	room  *budget.Account // what is reserved for w
	users int             // who has not left yet
	used  int             // clock of the last use
}

func newWorkloadCache(limit int64) *workloadCache {
	return &workloadCache{limit: limit, loads: make(chan struct{}, loadsAtOnce), entries: map[string]*worldEntry{}}
}

// use returns the workload called key, and loads it if it is not in the cache. Its memory is reserved until leave has
// been called as often as use, and then until its place is needed. load reserves what it is about to take in room.
// Failures are not cached.
func (c *workloadCache) use(ctx context.Context, key string,
	load func(ctx context.Context, room *budget.Account) (*Workload, error)) (w *Workload, leave func(), err error) {
	for {
		c.mu.Lock()
		e, there := c.entries[key]
		if !there {
			e = &worldEntry{ready: make(chan struct{}), room: c.budget.Account()}
			c.entries[key] = e
		}
		c.clock++
		e.used = c.clock
		e.users++
		c.mu.Unlock()
		leave := sync.OnceFunc(func() { c.leave(e) })
		if !there {
			if err := c.load(ctx, key, e, load); err != nil {
				return nil, nil, err
			}
			return e.w, leave, nil
		}
		select {
		case <-e.ready:
		case <-ctx.Done():
			leave()
			return nil, nil, ctx.Err()
		}
		if e.err == nil {
			return e.w, leave, nil
		}
		// If the request that loaded it was cancelled, a waiting request tries again.
		if !ended(e.err) {
			return nil, nil, e.err
		}
	}
}

// load loads the workload of e.
func (c *workloadCache) load(ctx context.Context, key string, e *worldEntry,
	load func(context.Context, *budget.Account) (*Workload, error)) (err error) {
	var w *Workload
	err = errors.New("the workload could not be made") // in case load panics
	defer func() {
		c.mu.Lock()
		e.w, e.err = w, err
		if err != nil {
			e.w = nil
			delete(c.entries, key)
			e.room.Release()
		}
		c.evict(e, c.limit)
		c.mu.Unlock()
		close(e.ready)
	}()
	select {
	case c.loads <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.loads }()
	if w, err = load(ctx, e.room); err != nil {
		return err
	}
	return reserve(e.room, w.bytes)
}

// reserve makes what is reserved for a workload n bytes.
func reserve(room *budget.Account, n int64) error {
	if room.Set(budget.Workloads, n) {
		return nil
	}
	return room.Refuse("this workload", n-room.Held())
}

// leave notes that one user of e has gone.
func (c *workloadCache) leave(e *worldEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.users--
	c.evict(e, c.limit)
}

// evict drops the least recently used of the unused workloads, fresh excepted, until the cached ones have at most
// limit bytes. Workloads that are still loading do not count.
func (c *workloadCache) evict(fresh *worldEntry, limit int64) {
	total := int64(0)
	var keys []string
	for k, e := range c.entries {
		if e.w == nil {
			continue
		}
		total += e.w.bytes
		if e != fresh && e.users == 0 {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b string) int { return c.entries[a].used - c.entries[b].used })
	for _, k := range keys {
		if total <= limit {
			return
		}
		e := c.entries[k]
		total -= e.w.bytes
		delete(c.entries, k)
		e.room.Release()
	}
}

// free drops unused workloads until it has freed the given number of bytes or none are left. The budget calls it.
func (c *workloadCache) free(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	total := int64(0)
	for _, e := range c.entries {
		if e.w != nil {
			total += e.w.bytes
		}
	}
	c.evict(nil, total-bytes)
}

// inRoom returns a context under which the workload of t is read only as far as its memory can be reserved in room.
// That of the model is reserved with it.
func inRoom(ctx context.Context, room *budget.Account, t *workload.TraceConfig, model *namedFile) (context.Context,
	error) {
	least := int64(leastRoom)
	if model != nil {
		least += fileLoading * model.bytes
	}
	for _, name := range []string{t.File, t.Profiles} {
		if name != "" {
			least += fileLoading * diskBytes(name)
		}
	}
	return workload.WithRoom(ctx, func(jobs int) error { return reserve(room, least+jobLoading*int64(jobs)) }),
		reserve(room, least)
}

// diskBytes returns the bytes of a file, or of all files in a folder. What cannot be seen counts as empty, for reading
// it will fail.
func diskBytes(name string) int64 {
	total := int64(0)
	_ = filepath.WalkDir(name, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if st, err := d.Info(); err == nil {
				total += st.Size()
			}
		}
		return nil
	})
	return total
}
