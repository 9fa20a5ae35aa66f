package server

import (
	"bytes"
	"crypto/rand"
	"errors"
	"net"
	"sync"
	"unsafe"

	"clustergym/env/bridge/wire"
)

// leastRegion is the size of a batch of observations, in bytes, from which on shared memory is worth a mapping: below,
// copying them through the connection costs next to nothing.
const leastRegion = 64 << 10

// errNoRegion is for systems on which regions do not exist.
var errNoRegion = errors.New("server: no memory that can be shared by path on this system")

// region is memory that another process of the same user can map for reading, by path. It has no name in any file
// system: it is gone when the last process has let go of it, however the processes end.
type region struct {
	path string
	data []byte
	fd   int
}

// floats is the region's memory as numbers of the machine's byte order.
func (r *region) floats() []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(r.data))), len(r.data)/4)
}

// probe is the region by which clients find out whether they see this server's memory: a tunnel, another container or
// another user do not, although they come from a loopback address. It holds random bytes.
type probe struct {
	once sync.Once
	r    *region // nil where there are no regions
}

const probeSize = 32

// region is nil where clients cannot be given any.
func (p *probe) region() *region {
	p.once.Do(func() {
		r, err := newRegion("clustergym-probe", probeSize)
		if err != nil {
			return
		}
		if _, err := rand.Read(r.data); err != nil {
			r.close()
			return
		}
		p.r = r
	})
	return p.r
}

// close gives the memory back. No region is made afterwards.
func (p *probe) close() {
	p.once.Do(func() {})
	if p.r != nil {
		p.r.close()
		p.r = nil
	}
}

// mayShare says whether a client at addr can be offered memory: only on this machine does it exist.
func (s *Server) mayShare(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback() && s.cfg.SharedMemory && s.probe.region() != nil
}

// writeProbe tells the client where it can look whether it sees the server's memory.
func (s *Server) writeProbe(w *wire.Writer) {
	r := s.probe.region()
	w.Map(2)
	w.Key("path")
	w.Str(r.path)
	w.Key("check")
	w.Bin(bytes.Clone(r.data))
}

// share moves the handle's observations to memory that the client sees. Where that is not worth it, or there is none,
// they stay.
func (h *vecHandle) share() {
	size := 4 * len(h.b.Obs)
	if size < leastRegion {
		return
	}
	r, err := newRegion("clustergym-observations", size)
	if err != nil {
		h.log.Debug("observations are not shared", "error", err)
		return
	}
	h.region, h.b.Obs = r, r.floats()
}

// writeShare tells the client where its observations stand.
func (h *vecHandle) writeShare(w *wire.Writer) {
	w.Map(4)
	w.Key("path")
	w.Str(h.region.path)
	w.Key("size")
	w.Int(int64(len(h.region.data)))
	w.Key("row")
	w.Int(int64(h.shape.obs))
	w.Key("at")
	if h.view == wire.ViewFlat {
		w.Map(0)
		return
	}
	n := 0
	for _, p := range h.shape.parts {
		if !p.mask {
			n++
		}
	}
	w.Map(n)
	for _, p := range h.shape.parts {
		if !p.mask {
			w.Key(p.name)
			w.Int(int64(p.at))
		}
	}
}

// writeUnshared writes what of v's observations does not stand in the region: masks, or nothing.
func (h *vecHandle) writeUnshared(w *wire.Writer, v view) {
	if !h.maskObs {
		w.Nil()
		return
	}
	w.Map(1)
	w.Key(wire.MaskKey)
	dims := h.shape.maskDims
	dims[0] = v.k
	gatherBool(w.Array(wire.U8, dims...), v.mask, h.shape.mask, v.k, v.at)
}
