package profile

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

// sound checks that a table's methods keep their promises.
func sound(t *testing.T, b *builder) {
	table := b.table()
	if len(table.models) > 300 {
		return // the loops below are square
	}
	for _, gpu := range append(table.Types(), "") {
		for _, m := range table.Models() {
			for _, n := range []int{1, 2, 3, 8} {
				if v, ok := table.Throughput(m, gpu, n); ok != (v > 0) || math.IsInf(v, 0) || math.IsNaN(v) {
					t.Fatalf("%q on %d %q: %v, %v", m, n, gpu, v, ok)
				}
				if v, ok := table.Spread(m, gpu, n, 2); ok && !(v > 0 && v <= 1) {
					t.Fatalf("%q on %d %q keeps %v", m, n, gpu, v)
				}
				if d, ok := table.Work(m, 0, n, 10, gpu); ok && d <= 0 {
					t.Fatalf("%q on %d %q takes %v", m, n, gpu, d)
				}
			}
			p, ok := table.Profile(m, gpu)
			if ok != (p != nil) {
				t.Fatalf("%q on %q: %v, %v", m, gpu, p, ok)
			}
			if p == nil {
				continue
			}
			if p.Compute < 0 || p.GradientBytes < 0 || p.MemBytes < 0 || p.Name != m {
				t.Fatalf("%+v", p)
			}
			for i := 1; i < len(p.Scaling); i++ {
				if p.Scaling[i].GPUs <= p.Scaling[i-1].GPUs {
					t.Fatalf("%+v", p)
				}
			}
			for name, v := range p.Speeds {
				if !(v > 0) || math.IsInf(v, 0) {
					t.Fatalf("%s: %v", name, v)
				}
			}
		}
	}
	for pair, v := range table.kept {
		if !(v > 0 && v <= 1) {
			t.Fatalf("%v keeps %v", pair, v)
		}
	}
}

func FuzzGavel(f *testing.F) {
	f.Add([]byte(smallGavel))
	f.Add([]byte(`{"v100":{"('A (batch size 99999999999999)',1)":{"null":1e-15,"('A',1)":[1e15,0]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := newBuilder()
		if b.gavel(data, "f") == nil {
			sound(t, b)
		}
	})
}

func FuzzChronus(f *testing.F) {
	f.Add([]byte(`{"net": {"2": {"1": 1.0, "2": 0.75}, "8": {"4": 0.25, "1": 1.0}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := newBuilder()
		if b.chronus(data, "f") == nil {
			sound(t, b)
		}
	})
}

func FuzzElasticFlow(f *testing.F) {
	f.Add("global_batch_size,1,2,4\r\n64,4.0,6.0,nan\r\n128,2,3.5,0\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		b := newBuilder()
		if b.elasticflow(strings.NewReader(text), "f", "net", "T4") == nil {
			sound(t, b)
		}
	})
}

func FuzzLucid(f *testing.F) {
	f.Add(pairsHeader+"0,A,D,1,32,0,0.9,B,E,1,64,1,1.05,50\n", alone)
	f.Fuzz(func(t *testing.T, pairs, single string) {
		b := newBuilder()
		if b.lucidPairs(strings.NewReader(pairs), "f") == nil && b.lucidAlone(strings.NewReader(single), "g") == nil {
			sound(t, b)
		}
	})
}

func FuzzTiresias(f *testing.F) {
	f.Add(tensors)
	f.Fuzz(func(t *testing.T, text string) {
		b := newBuilder()
		if b.tiresias(strings.NewReader(text), "f") == nil {
			sound(t, b)
		}
	})
}

func FuzzSia(f *testing.F) {
	f.Add(placements, scaling, validation, 20, false)
	f.Add("placement,local_bsz,step_time,sync_time\n88,1,1.0,0.2\n",
		"num_nodes,num_replicas,local_bsz,step_time,sync_time\n1,8,2,1e-15,0\n", validation, 1<<40, true)
	f.Fuzz(func(t *testing.T, placed, scaled, valid string, batch int, pipelined bool) {
		b := newBuilder()
		name := "net"
		if pipelined {
			name = "net_pmp"
		}
		a := b.application(name)
		if batch < 1 || batch > maxBatch || a.placements(strings.NewReader(placed), "p", "rtx") != nil ||
			a.scalability(strings.NewReader(scaled), "s", "rtx") != nil ||
			a.validation(strings.NewReader(valid), "v", batch) != nil {
			return
		}
		a.finish(b)
		sound(t, b)
	})
}

func FuzzKindOf(f *testing.F) {
	for _, s := range []string{smallGavel, `{"net": {"2": {"1": 1.0}}}`, pairsHeader, alone, tensors, placements, scaling,
		validation} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		what, err := kindOf(data, "validation-3.csv")
		if err != nil {
			if what != "" {
				t.Fatal(what, err)
			}
			return
		}
		_ = newBuilder().file(what, data, "validation-3.csv") // any contents may be refused but must not panic
	})
}

func FuzzInterference(f *testing.F) {
	f.Add([]byte("model,other,kept\nA,B,0.5\nA,*,0.75\n*,B,0.25\n*,*,0.9\n\"A (D, batch size 32)\",B,1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := ReadInterference(bytes.NewReader(data), "f")
		if err != nil {
			return
		}
		for _, v := range []string{"A", "A (x)", "B", ""} {
			if k := x.Kept(of(v), of("B")); !(k > 0 && k <= 1) {
				t.Fatalf("%q keeps %v", v, k)
			}
		}
	})
}
