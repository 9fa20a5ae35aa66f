package options

import (
	"errors"
	"io/fs"

	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
)

// FileMistake returns an error about a file that the user named.
func FileMistake(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Mistakef("%s: there is no such file", path)
	}
	return fault.Mistakef("%s: %w", path, ordinary.Reason(err))
}
