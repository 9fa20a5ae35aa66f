//go:build unix

package steer

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// owner returns the number of a file's owner.
func owner(info fs.FileInfo) (uid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}

// foreign reports whether a file belongs to another user.
func foreign(info fs.FileInfo) bool {
	uid, ok := owner(info)
	return ok && uid != os.Geteuid()
}

// everybodys reports whether everybody may write a file, or put others into a folder.
func everybodys(info fs.FileInfo) bool { return info.Mode().Perm()&0o002 != 0 }

// strange reports whether a file belongs to neither us nor root.
func strange(info fs.FileInfo) bool {
	uid, ok := owner(info)
	return ok && uid != 0 && uid != os.Geteuid()
}

// ownerOf names a file's owner.
func ownerOf(info fs.FileInfo) string {
	uid, ok := owner(info)
	if !ok {
		return "an unknown user"
	}
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return fmt.Sprintf("%s (uid %d)", u.Username, uid)
	}
	return fmt.Sprintf("uid %d", uid)
}
