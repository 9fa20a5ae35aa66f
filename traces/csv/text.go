package csv

import "unicode/utf8"

// upper are the characters of Windows-1252 from 0x80 to 0x9f; the others are those of Latin-1. The five that it does
// not have stand for themselves.
var upper = [32]rune{'€', 0x81, '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', 0x8d, 'Ž', 0x8f,
	0x90, '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', 0x9d, 'ž', 'Ÿ'}

// appendWindows1252 appends text of that code to dst in UTF-8.
func appendWindows1252(dst, text []byte) []byte {
	for _, c := range text {
		r := rune(c)
		if c >= 0x80 && c < 0xa0 {
			r = upper[c-0x80]
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}
