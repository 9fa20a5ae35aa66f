package wire

import (
	"bytes"
	"fmt"
	"testing"
)

// stepReply writes the reply to a step of n environments, each with an observation of width float32 in one field and a
// mask of 16.
func stepReply(w *Writer, n int, obs []float32, mask []int8, reward []float64, flags []bool) {
	w.Reset()
	w.Reply(7, OpStep, 5)
	w.Key("obs")
	w.Map(1)
	w.Key("jobs")
	PutF32(w.Array(F32, n, len(obs)/n), obs)
	w.Key("r")
	w.F64(reward, n)
	w.Key("te")
	PutBool(w.Array(Bool, len(flags)), flags)
	w.Key("tr")
	PutBool(w.Array(Bool, len(flags)), flags)
	w.Key("info")
	w.Map(4)
	w.Key(MaskKey)
	room := w.Array(I8, n, len(mask)/n)
	for i, v := range mask {
		room[i] = byte(v)
	}
	w.Key("_" + MaskKey)
	PutBool(w.Array(Bool, len(flags)), flags)
	w.Key("elapsed_s")
	w.F64(reward, n)
	w.Key("_elapsed_s")
	PutBool(w.Array(Bool, len(flags)), flags)
}

// replyOf returns a function that writes one such reply.
func replyOf(w *Writer, n, width int) func() {
	obs, mask := make([]float32, n*width), make([]int8, n*16)
	for i := range obs {
		obs[i] = float32(i) / 7
	}
	reward, flags := make([]float64, n), make([]bool, n)
	return func() { stepReply(w, n, obs, mask, reward, flags) }
}

var sizes = []struct{ n, width int }{{1, 64}, {64, 64}, {64, 1024}}

func BenchmarkEncodeStepReply(b *testing.B) {
	for _, enc := range encodings3() {
		for _, s := range sizes {
			b.Run(fmt.Sprintf("%v/%dx%d", enc, s.n, s.width), func(b *testing.B) {
				w := NewWriter(enc)
				write := replyOf(w, s.n, s.width)
				write()
				b.SetBytes(int64(w.Len()))
				b.ReportAllocs()
				for b.Loop() {
					write()
				}
			})
		}
	}
}

func BenchmarkDecodeStepReply(b *testing.B) {
	for _, enc := range encodings3() {
		for _, s := range sizes {
			b.Run(fmt.Sprintf("%v/%dx%d", enc, s.n, s.width), func(b *testing.B) {
				w := NewWriter(enc)
				replyOf(w, s.n, s.width)()
				decodeBench(b, enc, bytes.Clone(w.Bytes()))
			})
		}
	}
}

// stepRequest is a step of n environments with one action each.
func stepRequest(enc Encoding, n int) []byte {
	w := NewWriter(enc)
	w.Request(1000, OpStep, 2)
	w.Key("h")
	w.Uint(1)
	w.Key("a")
	room := w.Array(I64, n)
	clear(room)
	return bytes.Clone(w.Bytes())
}

func BenchmarkDecodeStepRequest(b *testing.B) {
	for _, enc := range encodings3() {
		for _, n := range []int{1, 64, 1024} {
			b.Run(fmt.Sprintf("%v/%d", enc, n), func(b *testing.B) { decodeBench(b, enc, stepRequest(enc, n)) })
		}
	}
}

func decodeBench(b *testing.B, enc Encoding, frame []byte) {
	d := NewDecoder(enc, DefaultLimits())
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	for b.Loop() {
		if _, e := d.Decode(frame); e != nil {
			b.Fatal(e)
		}
	}
}
