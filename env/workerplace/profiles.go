package workerplace

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"clustergym/internal/nearest"
	"clustergym/traces"
	"clustergym/traces/profile"
)

// Profiles says how fast models train on different numbers of workers and servers. It does not change after it was
// made, and any number of environments may use it at once. ReadProfiles, TableProfiles and LoadProfiles make it.
type Profiles struct {
	names  []string
	known  func(model string) (own string, ok bool)
	spread func(model string, workers, servers int) float64
	rate   func(model string, workers int) float64 // 0 = not known
	kept   func(victim, other string) (float64, bool)
}

// Names returns the names of the models, sorted.
func (p *Profiles) Names() []string { return slices.Clone(p.names) }

// Known returns the profile's own name of a model: a name with something in parentheses that is not known, as in
// "ResNet-18 (batch size 64)", stands for what is before them.
func (p *Profiles) Known(model string) (own string, ok bool) { return p.known(model) }

// Spread returns the part of its speed on as few servers as possible, in (0, 1], that a model keeps on so many servers.
// A number of workers that was not measured counts as the next smaller one, and where nothing was measured all is kept.
func (p *Profiles) Spread(model string, workers, servers int) float64 {
	return p.spread(model, workers, servers)
}

// Rate returns the iterations a second of a model alone on so many workers, 0 where they are not known.
func (p *Profiles) Rate(model string, workers int) float64 { return p.rate(model, workers) }

// TableProfiles returns what table t measured on the type of GPU called gpu, "" for the only one. Batch sizes of a
// model are one model, as profile.Table takes them.
func TableProfiles(t *profile.Table, gpu string) (*Profiles, error) {
	own, ok := t.Type(gpu)
	if !ok && len(t.Types()) > 0 {
		return nil, fmt.Errorf("speeds: type of GPU: got %q, want %s", gpu, nearest.OneOf(gpu, t.Types()))
	}
	p := &Profiles{}
	known := map[string]bool{}
	for _, name := range t.Models() {
		base := baseName(name)
		if !known[base] {
			p.names = append(p.names, base)
		}
		known[base] = true
	}
	slices.Sort(p.names)
	p.known = func(model string) (string, bool) {
		base := baseName(model)
		return base, known[base]
	}
	p.spread = func(model string, workers, servers int) float64 {
		for n := workers; n >= max(servers, 2); n-- {
			if v, ok := t.Spread(model, own, n, servers); ok {
				return v
			}
		}
		return 1
	}
	p.rate = func(model string, workers int) float64 {
		for n := workers; n >= 1; n-- {
			if v, ok := t.Throughput(model, own, n); ok {
				return v
			}
		}
		return 0
	}
	p.kept = t.Kept
	return p, nil
}

// baseName is a model's name without what stands in parentheses after it.
func baseName(model string) string {
	base, _, _ := strings.Cut(model, " (")
	return base
}

// The columns of a file of speeds; servers may be missing.
var speedColumns = []string{"model", "workers", "speed"}

// speed is one measurement.
type speed struct {
	workers, servers int
	rate             float64
}

// ReadProfiles reads a CSV file with the columns model, workers and speed, and perhaps servers: the iterations a second
// that model makes alone on so many workers (1 to 4096) on so many servers (1 where the file does not say). file is the
// name that messages give.
func ReadProfiles(r io.Reader, file string) (*Profiles, error) {
	d, err := traces.NewTable(r, file, speedColumns...)
	if err != nil {
		return nil, err
	}
	at := d.At("model", "workers", "speed", "servers")
	of := map[string][]speed{}
	for {
		if err := d.Next(); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		model := string(d.Text(at[0]))
		if model == "" {
			return nil, d.Fault(at[0], "the name of a model")
		}
		workers, err := d.Whole(at[1], 1, 4096)
		if err != nil {
			return nil, err
		}
		rate, err := d.Number(at[2], 9, 1, 1e18, "iterations a second, 1e-9 to 1e9")
		if err != nil {
			return nil, err
		}
		servers := int64(1)
		if d.Given(at[3]) {
			if servers, err = d.Whole(at[3], 1, workers); err != nil {
				return nil, err
			}
		}
		s := speed{int(workers), int(servers), float64(rate) / 1e9}
		if slices.ContainsFunc(of[model], func(o speed) bool { return o.workers == s.workers && o.servers == s.servers }) {
			return nil, d.Fault(at[1], "each number of workers and servers of a model once")
		}
		of[model] = append(of[model], s)
	}
	if len(of) == 0 {
		return nil, &traces.RowError{File: file, Line: d.Line(), Value: "no rows", Want: "the speed of at least one model"}
	}
	p := &Profiles{kept: func(string, string) (float64, bool) { return 0, false }}
	for name, all := range of { // sorted below
		p.names = append(p.names, name)
		slices.SortFunc(all, func(a, b speed) int {
			return cmp.Or(cmp.Compare(a.workers, b.workers), cmp.Compare(a.servers, b.servers))
		})
	}
	slices.Sort(p.names)
	p.known = func(model string) (string, bool) {
		if of[model] != nil {
			return model, true
		}
		base := baseName(model)
		return base, of[base] != nil
	}
	p.spread = func(model string, workers, servers int) float64 {
		all := measuredFor(of[model], workers)
		if len(all) == 0 {
			return 1
		}
		kept := all[0].rate
		for _, s := range all {
			if s.servers <= servers {
				kept = s.rate
			}
		}
		return min(1, kept/all[0].rate)
	}
	p.rate = func(model string, workers int) float64 {
		if all := measuredFor(of[model], workers); len(all) > 0 {
			return all[0].rate
		}
		return 0
	}
	return p, nil
}

// measuredFor returns the measurements of the largest number of workers up to workers, fewest servers first.
func measuredFor(all []speed, workers int) []speed {
	end := 0
	for end < len(all) && all[end].workers <= workers {
		end++
	}
	begin := end
	for begin > 0 && all[begin-1].workers == all[end-1].workers {
		begin--
	}
	return all[begin:end]
}

// LoadProfiles reads the file of speeds at path, as ReadProfiles does, or a published table that profile.Load knows, as
// TableProfiles does with gpu. Files may be packed.
func LoadProfiles(ctx context.Context, from *traces.Files, path, gpu string) (*Profiles, error) {
	if !ownFile(ctx, from, path) {
		t, err := profile.LoadIn(ctx, from, path)
		if err != nil {
			return nil, err
		}
		return TableProfiles(t, gpu)
	}
	f, err := from.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return ReadProfiles(f, path)
}

// ownFile says whether path is a file with the columns model and workers: then it is one for ReadProfiles, which says
// what else is missing. profile.Load says what is wrong with a path that cannot be opened.
func ownFile(ctx context.Context, from *traces.Files, path string) bool {
	f, err := from.Open(ctx, path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // it was only read
	head, _ := bufio.NewReaderSize(f, 1<<16).Peek(1 << 16)
	line, _, _ := bytes.Cut(bytes.TrimPrefix(head, []byte("\ufeff")), []byte("\n"))
	return traces.HasColumns(append(line, '\n'), speedColumns[:2]...)
}
