// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Chart draws the bars of the sections as SVG: above, the time of each contender in proportion to the limit's;
// below, its requests a pod. It returns nil if no section has bars.
func Chart(sections []Section) ([]byte, error) {
	sections = slices.DeleteFunc(slices.Clone(sections), func(s Section) bool { return len(s.Bars) == 0 })
	if len(sections) == 0 {
		return nil, nil
	}
	wall, err := panel(sections, "Time, in proportion to the limit (logarithmic)", func(b Bar) float64 { return b.Wall })
	if err != nil {
		return nil, err
	}
	requests, err := panel(sections, "API requests a pod (logarithmic)", func(b Bar) float64 { return b.PerPod })
	if err != nil {
		return nil, err
	}
	requests.Legend = plot.NewLegend() // the one above serves both
	svg := vgsvg.New(chartWidth, 16*vg.Centimeter)
	canvas := draw.New(svg)
	tiles := draw.Tiles{Rows: 2, Cols: 1, PadY: 6 * vg.Millimeter, PadTop: 2 * vg.Millimeter, PadBottom: 2 * vg.Millimeter, PadLeft: 2 * vg.Millimeter, PadRight: 4 * vg.Millimeter}
	rows := [][]*plot.Plot{{wall}, {requests}}
	for i, row := range plot.Align(rows, tiles, canvas) {
		rows[i][0].Draw(row[0])
	}
	var out bytes.Buffer
	_, err = svg.WriteTo(&out)
	return out.Bytes(), err
}

const chartWidth = 22 * vg.Centimeter

// colours are easy to tell apart, by the colour-blind too.
var colours = []color.Color{
	color.RGBA{R: 0, G: 114, B: 178, A: 255},
	color.RGBA{R: 230, G: 159, B: 0, A: 255},
	color.RGBA{R: 213, G: 94, B: 0, A: 255},
	color.RGBA{R: 150, G: 150, B: 150, A: 255},
	color.RGBA{R: 205, G: 205, B: 205, A: 255},
}

// panel is one plot: a group of bars for each section, a bar for each contender.
func panel(sections []Section, title string, value func(Bar) float64) (*plot.Plot, error) {
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Text = title
	p.Title.TextStyle.Font.Size = vg.Points(11)
	p.Legend.Top, p.Legend.Left, p.Legend.ThumbnailWidth = true, true, vg.Points(10)
	p.Legend.XOffs = chartWidth - 6.5*vg.Centimeter // to the right all the same: fonts differ in width
	p.Legend.TextStyle.Font.Size = vg.Points(9)
	p.Y.Tick.Marker = ticks{}
	contenders := contendersOf(sections)
	width := 14 * vg.Millimeter * 3 / vg.Length(max(len(contenders), 3))
	var all []labelled
	for i, name := range contenders {
		offset := width * (vg.Length(i) - vg.Length(len(contenders)-1)/2)
		var values plotter.Values
		for x, s := range sections {
			height := 0.0
			if j := slices.IndexFunc(s.Bars, func(b Bar) bool { return b.Contender == name }); j >= 0 {
				v := value(s.Bars[j])
				height = heightOf(v)
				all = append(all, labelled{x: float64(x), value: v, offset: offset, cut: s.Bars[j].Cut})
			}
			values = append(values, height)
		}
		bars, err := plotter.NewBarChart(values, width*0.9)
		if err != nil {
			return nil, fmt.Errorf("drawing the bars of %s: %w", name, err)
		}
		bars.Color, bars.LineStyle.Width, bars.Offset = colours[i%len(colours)], 0, offset
		p.Add(bars)
		p.Legend.Add(name, bars)
	}
	p.Y.Min, p.Y.Max = 0, p.Y.Max*1.15 // room for what stands on the highest
	return p, label(p, sections, all)
}

// lowest is the value of a bar without height. The scale is logarithmic, as the contenders lie far apart.
const lowest = 0.5

func heightOf(v float64) float64 { return max(0, math.Log10(v/lowest)) }

// ticks are labelled with values where the axis has heights.
type ticks struct{}

func (ticks) Ticks(_, highest float64) []plot.Tick {
	var out []plot.Tick
	for decade := 1.0; ; decade *= 10 {
		for _, v := range []float64{decade, 2 * decade, 5 * decade} {
			if heightOf(v) > highest {
				return out
			}
			out = append(out, plot.Tick{Value: heightOf(v), Label: strconv.FormatFloat(v, 'f', -1, 64)})
		}
	}
}

func contendersOf(sections []Section) []string {
	var out []string
	for _, s := range sections {
		for _, b := range s.Bars {
			if !slices.Contains(out, b.Contender) {
				out = append(out, b.Contender)
			}
		}
	}
	return out
}

type labelled struct {
	x, value float64
	offset   vg.Length
	cut      bool
}

// label names the groups and writes its value on each bar; one that was cut short has a > before it.
func label(p *plot.Plot, sections []Section, all []labelled) error {
	var names []string
	for _, s := range sections {
		names = append(names, s.Workload+": "+s.Title)
	}
	p.NominalX(names...)
	p.X.Min, p.X.Max = -0.5, float64(len(sections))+0.3 // room for the legend
	for _, l := range all {
		text := strconv.FormatFloat(l.value, 'f', 2, 64)
		if l.value >= 10 {
			text = strconv.Itoa(int(math.Round(l.value)))
		}
		if l.cut {
			text = ">" + text
		}
		labels, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: l.x, Y: heightOf(l.value)}}, Labels: []string{text}})
		if err != nil {
			return fmt.Errorf("labelling a bar: %w", err)
		}
		labels.TextStyle[0].Font.Size = vg.Points(8)
		labels.TextStyle[0].XAlign = draw.XCenter
		labels.Offset = vg.Point{X: l.offset, Y: vg.Points(2)}
		p.Add(labels)
	}
	return nil
}
