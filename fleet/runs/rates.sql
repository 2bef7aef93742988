-- What does each host deliver, by kernel? The main metric of the newest complete run of a scenario; a search has its bounds as well.
SELECT scenario, host, kernel, variant, metric, round(median, 3) AS median, round(interval_low, 3) AS interval_low,
    round(interval_high, 3) AS interval_high, stage, worst_grade, lower_per_s, upper_per_s, capacity_unit, is_regular
FROM 'runs.parquet' JOIN 'results.parquet' USING (host, run_id)
WHERE status = 'complete' AND metric = main_metric
QUALIFY row_number() OVER (PARTITION BY host, kernel, scenario, variant ORDER BY age) = 1
ORDER BY scenario, variant, median DESC, host;
