package replay

// chunkFrames is the number of observations that are allocated and freed together. It is large enough that the list of
// chunks stays short, and small enough that the last chunk's unused part does not matter.
const chunkFrames = 256

// frames stores observations with their masks, first in, first out, each identified by a number that counts up from 0.
// Transitions refer to observations by number, so the observation between two steps is stored once instead of twice,
// as one step's "next" and the following step's "this". Chunks that are no longer referred to are reused, so memory
// follows what is alive, and in steady state nothing is allocated.
type frames struct {
	obsLen, maskLen, maskBytes int

	chunks []*chunk // alive, in order; chunks[0] begins with number base
	spare  []*chunk
	base   uint64 // a multiple of chunkFrames
	next   uint64 // number of the next observation
}

type chunk struct {
	obs  []float32 // [chunkFrames, obsLen]
	mask []byte    // [chunkFrames, maskBytes], one bit an action
}

func newFrames(obsLen, maskLen int) frames {
	return frames{obsLen: obsLen, maskLen: maskLen, maskBytes: (maskLen + 7) / 8}
}

// push stores an observation and returns its number. A mask that is nil or has no legal action is stored as "every
// action is legal": it belongs to an episode's last observation, whose legal actions are unknown.
func (f *frames) push(obs []float32, mask []bool) uint64 {
	id := f.next
	f.grow()
	f.next++
	copy(f.obs(id), obs)
	bits := f.bits(id)
	clear(bits)
	some := false
	for i, legal := range mask {
		if legal {
			bits[i>>3] |= 1 << (i & 7)
			some = true
		}
	}
	if !some {
		for i := 0; i < f.maskLen; i++ {
			bits[i>>3] |= 1 << (i & 7)
		}
	}
	return id
}

// grow makes room for number f.next.
func (f *frames) grow() {
	if f.next-f.base < uint64(len(f.chunks))*chunkFrames {
		return
	}
	if n := len(f.spare); n > 0 {
		f.chunks = append(f.chunks, f.spare[n-1])
		f.spare = f.spare[:n-1]
		return
	}
	f.chunks = append(f.chunks, &chunk{
		obs:  make([]float32, chunkFrames*f.obsLen),
		mask: make([]byte, chunkFrames*f.maskBytes),
	})
}

// release frees all observations with numbers below floor.
func (f *frames) release(floor uint64) {
	for len(f.chunks) > 0 && f.base+chunkFrames <= floor {
		f.spare = append(f.spare, f.chunks[0])
		copy(f.chunks, f.chunks[1:])
		f.chunks = f.chunks[:len(f.chunks)-1]
		f.base += chunkFrames
	}
}

func (f *frames) obs(id uint64) []float32 {
	k := id - f.base
	at := int(k%chunkFrames) * f.obsLen
	return f.chunks[k/chunkFrames].obs[at : at+f.obsLen]
}

func (f *frames) bits(id uint64) []byte {
	k := id - f.base
	at := int(k%chunkFrames) * f.maskBytes
	return f.chunks[k/chunkFrames].mask[at : at+f.maskBytes]
}

// unpack writes the mask of observation id to dst.
func (f *frames) unpack(dst []bool, id uint64) {
	bits := f.bits(id)
	for i := range dst {
		dst[i] = bits[i>>3]>>(i&7)&1 != 0
	}
}
