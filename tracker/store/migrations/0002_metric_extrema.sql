-- The least and greatest value of all points of a metric, so that searches can filter and sort by
-- them as by the latest. NULL: there is none but NaN. Kept by the writer; existing rows are filled
-- from blocks and tails (metric_extrema.cc).

ALTER TABLE latest_metrics ADD COLUMN min_value REAL;
ALTER TABLE latest_metrics ADD COLUMN max_value REAL;
