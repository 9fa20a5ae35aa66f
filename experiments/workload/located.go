package workload

import (
	"strings"

	"clustergym/experiments/catalog"
)

// located is where the file that a user names stands: "get:NAME" is a public trace in the user's cache, anything
// else a path.
func Located(name string) (string, error) {
	if !strings.HasPrefix(name, catalog.Prefix) {
		return name, nil
	}
	path, err := catalog.Path(name)
	if err != nil {
		return "", &InputError{err}
	}
	return path, nil
}
