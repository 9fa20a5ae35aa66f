// Package checkpoint keeps the state of a training run as directories of named parts, one directory a step:
//
//	checkpoints/50000/weights.safetensors, optimizer.safetensors, …, manifest.json
//
// manifest.json holds what the checkpoint is (Meta) and every part's size and SHA-256; it is written last. A save
// goes to a directory aside, is synced to disk and renamed into place, so that a crash at any moment leaves the
// old checkpoint or the new one, never half of one. A load reads and compares all hashes before it touches
// anything. What a crash left aside is removed by the next Save, and by Latest unless somebody is still writing it.
//
// It knows nothing of what is in a part, and decides nothing about when to save.
package checkpoint
