package options

import (
	"errors"
	"io/fs"
	"strconv"

	"clustergym/configs"
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

// DecodeFile reads a YAML file into cfg.
func DecodeFile(file string, cfg configs.Validator) error {
	data, err := ordinary.Read(file, ordinary.Settings)
	if err != nil {
		return FileMistake(file, err)
	}
	if err := configs.DecodeBytes(file, data, cfg); err != nil {
		return &fault.Mistake{Err: err}
	}
	return nil
}

// SetAll applies --set flags in order.
func SetAll(cfg configs.Validator, sets []string) error {
	for _, s := range sets {
		if err := configs.Set(cfg, s); err != nil {
			return fault.Mistakef("--set %s: %w", strconv.Quote(s), err)
		}
	}
	return nil
}
