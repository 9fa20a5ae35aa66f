// Package checkpoint keeps the state of a training run as directories of named parts, one directory a step:
//
//	checkpoints/50000/weights.safetensors, optimizer.safetensors, …, manifest.json
//
// manifest.json says what the checkpoint is of (Meta) and holds every part's size and SHA-256; it is written last. A
// save goes to a temporary directory, is synced to disk and renamed into place, so a crash at any moment leaves the old
// checkpoint or the new one, never a mixture. A load compares all hashes before it changes anything. What a crash left
// behind is removed by the next Save, and by Latest unless another process is still writing it.
//
// The package does not know what a part contains, and does not decide when to save.
package checkpoint
