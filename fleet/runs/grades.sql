-- Which runs were disturbed? The worst grade of the trials that count, trials that do not, and runs that did not end well.
SELECT host, scenario, run_id, started, status, worst_grade, trials, void_trials, headline
FROM 'runs.parquet'
WHERE status <> 'complete' OR worst_grade >= 'C' OR void_trials > 0
ORDER BY worst_grade DESC, void_trials DESC, host, started;
