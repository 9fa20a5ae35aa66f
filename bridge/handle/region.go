package handle

import (
	"bytes"
	"crypto/rand"
	"errors"
	"sync"
	"unsafe"

	"clustergym/bridge/wire"
)

// leastRegion is the size of a batch of observations, in bytes, from which on they are shared. Sending fewer through
// the connection costs next to nothing.
const leastRegion = 64 << 10

// errNoRegion is the error of systems without regions.
var errNoRegion = errors.New("handle: no memory that can be shared by path on this system")

// region is memory that another process of the same user can map for reading, by path. It is in no file system: it
// disappears when the last process has released it, however the processes end.
type region struct {
	path string
	data []byte
	fd   int
}

// floats returns the region's memory as numbers in the machine's byte order.
func (r *region) floats() []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(r.data))), len(r.data)/4)
}

// Probe is a region of random bytes by which clients find out whether they see this server's memory. Clients behind a
// tunnel, in another container or of another user do not, although they come from a loopback address.
type Probe struct {
	once sync.Once
	r    *region // nil if there are no regions
}

const probeSize = 32

// region returns the probe's region, made at the first call. It is nil if clients cannot have regions.
func (p *Probe) region() *region {
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

// Close frees the memory. No region is made afterwards.
func (p *Probe) Close() {
	p.once.Do(func() {})
	if p.r != nil {
		p.r.close()
		p.r = nil
	}
}

// Possible reports whether there is a probe, so that clients on this machine can be offered shared memory.
func (p *Probe) Possible() bool { return p.region() != nil }

// Place returns where a client can check whether it sees this memory. There must be a probe.
func (p *Probe) Place() wire.Map {
	r := p.region()
	return wire.MapOf("path", r.path, "check", bytes.Clone(r.data))
}

// share moves the handle's observations to memory that the client sees. They stay where they are if they are too small,
// or if there is no such memory.
func (h *Handle) share() {
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

// place returns where the client's observations are.
func (h *Handle) place() wire.Map {
	at := wire.Map{}
	for _, p := range h.shape.parts {
		if !p.mask && h.view != wire.ViewFlat {
			at.Add(p.name, p.at)
		}
	}
	return wire.MapOf("path", h.region.path, "size", len(h.region.data), "row", h.shape.obs, "at", at)
}

// writeUnshared writes the part of v's observations that is not in the region: masks, or nothing.
func (h *Handle) writeUnshared(w *wire.Writer, v view) {
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
