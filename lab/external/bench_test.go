package external

import (
	"encoding/binary"
	"fmt"
	"testing"

	"clustergym/bridge/wire"
)

// BenchmarkDecide measures the server's side of a decision point with some hundred waiting jobs: a job arrives or ends,
// one is started where a GPU is free, and the reply is written.
func BenchmarkDecide(b *testing.B) {
	var jobs []string
	for i := range 100_000 {
		at := max(0, i-164) * 25 / 16
		jobs = append(jobs, fmt.Sprintf("%d,%d,1", at, 60+i*37%80))
	}
	path := trace(b, "", jobs...)
	start := wire.Array{DType: wire.U8, Shape: []int{1}, Data: []byte{opStart}}
	job := wire.Array{DType: wire.I32, Shape: []int{1}, Data: make([]byte, 4)}
	none := wire.MapOf("op", []any{}, "job", []any{})
	one := wire.MapOf("op", start, "job", job)
	w := wire.NewWriter(wire.Ext)
	var d *desk
	var p *play
	b.ReportAllocs()
	waiting := 0
	for b.Loop() {
		if p == nil || p.over {
			b.StopTimer()
			d = newDesk(b, 1<<30)
			d.must(file(path, "8x8", "estimates", "exact"), "")
			p = d.s.(*simulations).plays[0]
			d.one()
			b.StartTimer()
		}
		m := none
		if p.v.Cluster().Free() > 0 {
			binary.LittleEndian.PutUint32(job.Data, uint32(p.queue[0]))
			m = one
		}
		w.Reset()
		if err := d.s.Do(b.Context(), wire.OpDecide, 1, wire.MapOf("plays", []any{m}), w); err != nil {
			b.Fatal(err)
		}
		waiting += len(p.queue)
	}
	b.ReportMetric(float64(waiting)/float64(b.N), "jobs")
}
