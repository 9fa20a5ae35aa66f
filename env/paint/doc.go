// Package paint draws the pictures of environments, which Painter of package env asks for. A Canvas has shapes and
// text; on top of them are the drawings that several environments share:
//
//   - Canvas.Cluster, the GPUs of a cluster by rack and machine, each in the colour of its job;
//   - Canvas.Queue, the waiting jobs as bars;
//   - Canvas.Fields, any observation as heat maps, for environments without a drawing of their own.
//
// It knows pixels, colours and text, and nothing about simulators: environments tell it what to show. Everything is
// drawn from its arguments alone, so equal states give equal pictures. Text is in the bitmap fonts of
// golang.org/x/image, which have ASCII only; other characters show as a box.
package paint
