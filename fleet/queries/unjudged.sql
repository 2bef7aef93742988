-- What could not be judged, and why? Newest report of each host.
SELECT id, value AS reason, count(DISTINCT host) AS hosts, min(host) AS example
FROM 'answers.parquet'
WHERE age = 1 AND what = 'unjudged'
GROUP BY id, reason
ORDER BY hosts DESC, id, reason;
