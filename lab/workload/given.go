package workload

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
)

// Given returns those of all workloads that can be had, with the paths of their files, and the names of the others. A
// workload whose file, a slash-separated path in the folder data, is "" is generated. A folder that has none of the
// files is the user's mistake; without a folder all workloads that have one are left out.
func Given[W any](data string, all []W, of func(*W) (name string, file *string)) (given []W, absent []string,
	err error) {
	var files []string
	found := false
	for _, w := range all {
		name, file := of(&w)
		if *file == "" {
			given = append(given, w)
			continue
		}
		inside := filepath.FromSlash(*file)
		files = append(files, inside)
		if data == "" {
			absent = append(absent, name)
			continue
		}
		path := filepath.Join(data, inside)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			absent = append(absent, name)
			continue
		} else if err != nil {
			return nil, nil, fault.Mistakef("data folder %s: %v", data, ordinary.Reason(err))
		}
		*file, found = path, true
		given = append(given, w)
	}
	if data != "" && !found && len(files) > 0 {
		return nil, nil, fault.Mistakef("data folder %s: it has none of %s", data, strings.Join(files, ", "))
	}
	return given, absent, nil
}
