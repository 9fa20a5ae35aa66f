package handle

import (
	"slices"
	"sync"
)

// Keys sign the snapshots of a server. The current key signs; it and the keys before it verify. Safe for concurrent
// use.
type Keys struct {
	mu   sync.Mutex
	list []func() []byte // the current key first
}

// mostKeys bounds the number of keys that verify, and so the work for a forged snapshot.
const mostKeys = 8

// NewKeys returns keys of which the current one is what key returns. key is called when a snapshot is first signed or
// verified, because deriving a key may take time.
func NewKeys(key func() []byte) *Keys { return &Keys{list: []func() []byte{sync.OnceValue(key)}} }

// Change makes key the current one. The last keys before it go on to verify.
func (k *Keys) Change(key func() []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = slices.Insert(k.list, 0, sync.OnceValue(key))
	k.list = k.list[:min(len(k.list), mostKeys)]
}

// signing returns the current key.
func (k *Keys) signing() []byte {
	k.mu.Lock()
	key := k.list[0]
	k.mu.Unlock()
	return key()
}

// verifying returns all keys, the current one first.
func (k *Keys) verifying() [][]byte {
	k.mu.Lock()
	list := slices.Clone(k.list)
	k.mu.Unlock()
	keys := make([][]byte, len(list))
	for i, key := range list {
		keys[i] = key()
	}
	return keys
}
