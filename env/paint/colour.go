package paint

import (
	"image/color"
	"math"
)

// Mix returns the colour that lies the share t, cut to [0, 1], of the way from one colour to another.
func Mix(from, to color.RGBA, t float64) color.RGBA {
	if !(t > 0) { // also NaN
		return from
	}
	t = min(t, 1)
	part := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + t*(float64(b)-float64(a)))) }
	return color.RGBA{part(from.R, to.R), part(from.G, to.G), part(from.B, to.B), 255}
}

// Colour returns the colour of thing number i, such as a job. It is always the same, and neighbours differ clearly.
func Colour(i int) color.RGBA {
	// Steps of the golden ratio round the circle of hues never come close to a hue of the last few.
	hue := math.Mod(float64(i)*0.6180339887498949, 1)
	tone := [...][2]float64{{0.70, 0.80}, {0.50, 0.92}, {0.85, 0.60}}[((i%3)+3)%3]
	if hue < 0 {
		hue++
	}
	return hsv(hue, tone[0], tone[1])
}

// hsv returns the colour of hue, saturation and value, all from 0 to 1.
func hsv(h, s, v float64) color.RGBA {
	channel := func(shift float64) uint8 {
		k := math.Mod(shift+6*h, 6)
		return uint8(math.Round(255 * (v - v*s*max(0, min(k, 4-k, 1)))))
	}
	return color.RGBA{channel(5), channel(3), channel(1), 255}
}

// The ends of scales.
var (
	scaleLow  = color.RGBA{222, 235, 247, 255}
	scaleHigh = color.RGBA{8, 48, 107, 255}
	scaleNeg  = color.RGBA{165, 15, 21, 255}
	scaleZero = color.RGBA{247, 247, 247, 255}
)

// Scale returns the colour of t on a scale from 0, pale, to 1, dark.
func Scale(t float64) color.RGBA { return Mix(scaleLow, scaleHigh, t) }

// Signed returns the colour of t on a scale from -1, red, over 0, white, to 1, blue.
func Signed(t float64) color.RGBA {
	if t < 0 {
		return Mix(scaleZero, scaleNeg, -t)
	}
	return Mix(scaleZero, scaleHigh, t)
}

// Over returns the colour of text that can be read on the given ground: Ink or Paper.
func Over(ground color.RGBA) color.RGBA {
	if 299*int(ground.R)+587*int(ground.G)+114*int(ground.B) > 140_000 { // luma, in thousandths
		return Ink
	}
	return Paper
}
