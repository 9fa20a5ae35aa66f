package traces

// IDs remembers which ids a reader has seen. An id that is a plain number of at most 12 digits without leading zeros
// costs one bit if its neighbours occur too; other ids cost a map entry. The zero value is ready. Not safe for
// concurrent use.
type IDs struct {
	pages map[uint64]*[1024]uint64 // by number / 65,536
	page  *[1024]uint64            // the page used last
	at    uint64                   // its number
	texts map[string]struct{}
}

// Add remembers id and reports whether it is new.
func (s *IDs) Add(id []byte) bool {
	n, ok := plainNumber(id)
	if !ok {
		if _, seen := s.texts[string(id)]; seen {
			return false
		}
		if s.texts == nil {
			s.texts = map[string]struct{}{}
		}
		s.texts[string(id)] = struct{}{}
		return true
	}
	if s.page == nil || s.at != n>>16 {
		s.at = n >> 16
		if s.pages == nil {
			s.pages = map[uint64]*[1024]uint64{}
		}
		if s.page = s.pages[s.at]; s.page == nil {
			s.page = new([1024]uint64)
			s.pages[s.at] = s.page
		}
	}
	word, bit := &s.page[n>>6&1023], uint64(1)<<(n&63)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}

// plainNumber reads at most 12 digits without leading zeros, so that equal numbers are equal ids.
func plainNumber(id []byte) (n uint64, ok bool) {
	if len(id) == 0 || len(id) > 12 || id[0] == '0' && len(id) > 1 {
		return 0, false
	}
	for _, c := range id {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}
