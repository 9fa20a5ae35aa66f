package workload

import (
	"strings"

	"clustergym/internal/fault"
	"clustergym/lab/catalog"
)

// Located returns the path of the file that a user names: "get:NAME" is a public trace in the user's cache, and
// anything else is a path already. A public trace that is not in the cache is a *fault.Mistake.
func Located(name string) (string, error) {
	if !strings.HasPrefix(name, catalog.Prefix) {
		return name, nil
	}
	path, err := catalog.Path(name)
	if err != nil {
		return "", &fault.Mistake{Err: err}
	}
	return path, nil
}
