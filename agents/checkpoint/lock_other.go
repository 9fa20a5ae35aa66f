//go:build !unix

package checkpoint

// lock does nothing where there are no advisory locks on directories: a run directory has one writer.
func lock(string) (unlock func(), err error) { return func() {}, nil }

func busy(string) (bool, error) { return false, nil }
