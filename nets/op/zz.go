package op

import "fmt"

func (o *Op) InS() string { return fmt.Sprint(o.in) }
