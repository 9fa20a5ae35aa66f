package handle

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// newRegion makes a region of size zero bytes. Other processes can read it. They can neither write to it nor change its
// size, which would kill this process by SIGBUS.
func newRegion(name string, size int) (*region, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoRegion, err)
	}
	r := &region{fd: fd, path: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd)}
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		return nil, r.failed(err)
	}
	if r.data, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, r.failed(err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW); err != nil {
		return nil, r.failed(err)
	}
	// From here on it cannot be opened for writing. Kernels before 5.1 cannot seal that; there a client could overwrite
	// the observations of its own environments, which only that client reads.
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_FUTURE_WRITE|unix.F_SEAL_SEAL)
	return r, nil
}

func (r *region) failed(err error) error {
	r.close()
	return fmt.Errorf("server: %w", err)
}

// close frees the memory. The slices of floats must not be used afterwards.
func (r *region) close() {
	if r.data != nil {
		_ = unix.Munmap(r.data) // it cannot fail for a whole mapping of ours
		r.data = nil
	}
	_ = unix.Close(r.fd) // nothing was written through it
}
