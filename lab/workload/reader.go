package workload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"clustergym/traces"
)

// NewCtxReader returns a reader of r that fails with ctx's error once ctx is done.
func NewCtxReader(ctx context.Context, r io.Reader) io.Reader { return &ctxReader{ctx, r} }

// ctxReader is what NewCtxReader returns.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *ctxReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// HashFile returns the SHA-256 of a regular file that from opens, in hexadecimal. For anything else it returns "",
// since a pipe, for example, can be read only once.
func HashFile(ctx context.Context, from *traces.Files, path string) (string, error) {
	st, err := from.Stat(path)
	if err != nil || !st.Mode().IsRegular() {
		return "", err
	}
	f, err := from.Raw(ctx, path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // open for reading only
	h := sha256.New()
	if _, err := io.Copy(h, &ctxReader{ctx, f}); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
