#ifndef PLUMBLINE_COMMON_EVIDENCE_CHART_H_
#define PLUMBLINE_COMMON_EVIDENCE_CHART_H_

#include <string>
#include <utility>
#include <vector>

// Figures as SVG 1.1 that need no network, no font and no script: vector, monochrome-safe marks in
// colours that colour-blind readers tell apart. The same input gives the same bytes.

namespace plumbline {

// A value with what is known of its spread; NaN: none.
struct ChartValue {
  double value;
  double low;  // NaN: no spread.
  double high;
};

ChartValue Plain(double value);
ChartValue NoValue();

// Rows under each other, a mark for each series: errors by node, times by work.
struct DotChart {
  std::string title;
  std::string subtitle;
  std::string axis;  // What the values are, with the unit.
  bool logarithmic = true;
  std::vector<std::string> rows;
  // A line is drawn above these rows, which begin a group.
  std::vector<size_t> group_starts;
  struct Series {
    std::string name;
    std::vector<ChartValue> values;  // By row.
  };
  std::vector<Series> series;
};

// Curves over whole numbers: a ratio by block, drift by step.
struct LineChart {
  std::string title;
  std::string subtitle;
  std::string x_axis;
  std::string y_axis;
  bool logarithmic = true;  // The y axis.
  struct Series {
    std::string name;
    std::vector<std::pair<double, double>> points;
  };
  std::vector<Series> series;
  // A level to look at, e.g. a bound; drawn where `name` is not empty.
  struct Level {
    std::string name;
    double value = 0;
  };
  Level level;
};

std::string DotChartSvg(const DotChart& chart);
std::string LineChartSvg(const LineChart& chart);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_EVIDENCE_CHART_H_
