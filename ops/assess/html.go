package assess

import "io"

// HTML writes the assessment as one page.
func (o *Assessment) HTML(io.Writer) error { return nil }
