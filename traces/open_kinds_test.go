package traces

import (
	"archive/zip"
	"bytes"
	"encoding/hex"
	"io"
	"os"
	"strings"
	"testing"
)

const small = "submit_time,duration,num_gpu\n0,100,1\n"

// bz is small packed with bzip2, which the standard library cannot write.
const bz = "425a6839314159265359eefb71df00000edb800010000460000000b6a3de002000314c98990646111a7a43434624804ac682e4d30a06908c799f1674dd97d12f3f177245385090eefb71df"

func zipped(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		w, err := z.Create(files[i])
		if err == nil {
			_, err = io.WriteString(w, files[i+1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// opened returns the contents of a file that holds b.
func opened(t *testing.T, b []byte) (string, error) {
	t.Helper()
	f, err := OpenFile(put(t, "x.csv", b))
	if err != nil {
		return "", err
	}
	defer f.Close()
	got, err := io.ReadAll(f)
	return string(got), err
}

func TestFilesOfEveryPackerAreUnpacked(t *testing.T) {
	gz, zst := packed(t, small)
	b, err := hex.DecodeString(bz)
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 512)
	gzOfZst, _ := packed(t, string(zst))
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"bzip2": {b, small}, "two bzip2 streams": {append(bytes.Clone(b), b...), small + small},
		"zip": {zipped(t, "a/jobs.csv", small), small}, "zip with folders": {zipped(t, "a/", "", "__MACOSX/._j", "x",
			"a/.DS_Store", "y", "a/j.csv", small), small},
		"gzip in zip":          {zipped(t, "jobs.csv.gz", string(gz)), small},
		"zstd in gzip":         {gzOfZst, small},
		"padded gzip":          {append(bytes.Clone(gz), zeros...), small},
		"padded with one zero": {append(bytes.Clone(gz), 0), small},
		"padded two members":   {append(append(bytes.Clone(gz), gz...), zeros...), small + small},
		"padded zstd":          {append(bytes.Clone(zst), zeros...), small}, "padded frames": {append(append(bytes.Clone(zst),
			zst...), zeros...), small + small},
		"padded bzip2":            {append(bytes.Clone(b), zeros...), small},
		"a header that names ORC": {[]byte("ORCID,PAR1\n1,2\n"), "ORCID,PAR1\n1,2\n"},
	} {
		if got, err := opened(t, c.b); got != c.want || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestWhatFollowsAPackedStreamIsAnError(t *testing.T) {
	gz, zst := packed(t, small)
	b, _ := hex.DecodeString(bz)
	for name, c := range map[string][]byte{"gzip": gz, "zstd": zst, "bzip2": b} {
		for _, tail := range []string{"garbage", "\x00\x00\x00\x00\x00\x00\x00\x001", "2,3,4\n"} {
			_, err := opened(t, append(bytes.Clone(c), tail...))
			if err == nil || !strings.Contains(err.Error(), "after the "+name+" stream the file has something else") {
				t.Errorf("%s and %q: %v", name, tail, err)
			}
		}
		if _, err := opened(t, c[:len(c)-3]); err == nil ||
			!strings.Contains(err.Error(), "the "+name+" stream is cut short or damaged") {
			t.Errorf("%s cut short: %v", name, err)
		}
	}
}

func TestFilesOfOtherKindsAreNamed(t *testing.T) {
	gz, _ := packed(t, string(append(bytes.Repeat([]byte{'a', 0}, 128), "\x00ustar\x0000"...)))
	deep := []byte(small)
	for range 4 {
		deep, _ = packed(t, string(deep))
	}
	locked := zipped(t, "a.csv", small)
	at := bytes.Index(locked, []byte("PK\x01\x02"))
	locked[at+8] |= 1
	cut := zipped(t, "a.csv", small)
	for name, c := range map[string]struct{ head, want string }{
		"xz":          {"\xfd7zXZ\x00\x00\x04", "this is an xz file; unpack it: xz -dc FILE > NEW"},
		"7z":          {"7z\xbc\xaf\x27\x1c\x00", "7-Zip"},
		"tar":         {strings.Repeat("a\x00", 128) + "\x00ustar\x0000", "tar archive"},
		"tar in gzip": {string(gz), "inside gzip this is a tar archive"},
		"parquet":     {"PAR1\x15\x04\x15", "Parquet"}, "orc": {"ORC\n\x0b\n\x03", "ORC"},
		"arrow":   {"ARROW1\x00\x00", "Arrow or Feather"},
		"feather": {"FEA1\x00\x00", "Feather"}, "arrow stream": {"\xff\xff\xff\xff\x70\x00", "Arrow"},
		"xls": {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\x00", "Excel"},
		"xlsx": {string(zipped(t, "[Content_Types].xml", "", "xl/workbook.xml", "")),
			"this is an Excel workbook; save its sheet as CSV UTF-8"},
		"ods":    {string(zipped(t, "mimetype", "", "content.xml", "")), "OpenDocument"},
		"sqlite": {"SQLite format 3\x00", "SQLite"},
		"hdf5":   {"\x89HDF\r\n\x1a\n", "HDF5"}, "pickle": {"\x80\x04\x95\x10", "pickle"}, "pdf": {"%PDF-1.7", "PDF"},
		"html":                 {"\n<!DOCTYPE html>\n<title>404", "web page"},
		"html without doctype": {"\xef\xbb\xbf<HTML><body>", "web page"},
		"xml":                  {"<?xml version='1.0'?><Error>", "this is XML"},
		"lfs":                  {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "Git LFS"},
		"annex":                {"/annex/objects/SHA256E-s1--0\n", "git-annex"},
		"404":                  {"404: Not Found", "not there"}, "numpy": {"\x93NUMPY\x01\x00", "NumPy"},
		"r":         {"RDX3\nX\n", "R's data"},
		"empty zip": {string(zipped(t)), "zip without a file"}, "two files": {string(zipped(t, "a.csv", small, "b.csv",
			small)), "zip of 2 files"},
		"encrypted": {string(locked), "encrypted"},
		"cut zip":   {string(cut[:len(cut)-9]), "the zip stream is cut short or damaged"},
		"zip in gzip": {func() string { z, _ := packed(t, string(zipped(t, "a.csv", small))); return string(z) }(),
			"zip inside another file"},
		"packed four times": {string(deep), "packed more than three times"},
	} {
		_, err := opened(t, []byte(c.head))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "x.csv: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAZipThatComesThroughAPipeIsNamed(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.Write(zipped(t, "a.csv", small)); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if _, err := unpack(r, r, "x"); err == nil || !strings.Contains(err.Error(), "through a pipe") {
		t.Errorf("%v", err)
	}
}
