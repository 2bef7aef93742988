-- What changed between the two newest complete runs of a scenario on a host? Facts of the environment, then the main metric of each
-- variant with its ratio. Intervals that overlap are no proof of a difference: `rxpath compare A B` judges.
WITH two AS (
    SELECT host, scenario, main_metric, max(run_id) FILTER (age = 2) AS earlier, max(run_id) FILTER (age = 1) AS later
    FROM 'runs.parquet' WHERE age <= 2 GROUP BY host, scenario, main_metric HAVING count(*) = 2
), found AS (
    SELECT t.host, scenario, place || ': ' || fact AS what, max(value) FILTER (run_id = earlier) AS before,
        max(value) FILTER (run_id = later) AS after, NULL::DOUBLE AS ratio, 1 AS part
    FROM two t JOIN 'facts.parquet' f ON t.host = f.host AND run_id IN (earlier, later)
    GROUP BY t.host, scenario, what
    HAVING before IS DISTINCT FROM after
    UNION ALL
    SELECT t.host, scenario, variant || ': ' || metric, round(max(median) FILTER (run_id = earlier), 3)::VARCHAR,
        round(max(median) FILTER (run_id = later), 3)::VARCHAR,
        round(max(median) FILTER (run_id = later) / nullif(max(median) FILTER (run_id = earlier), 0), 3), 2
    FROM two t JOIN 'results.parquet' m ON t.host = m.host AND run_id IN (earlier, later) AND metric = main_metric
    GROUP BY t.host, scenario, variant, metric
)
SELECT host, scenario, what, before, after, ratio FROM found ORDER BY host, scenario, part, what;
