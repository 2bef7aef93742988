-- Which findings are common? Newest report of each host; `rxpath explain ID` says more.
SELECT id, count(DISTINCT host) AS hosts,
    round(100.0 * count(DISTINCT host) / (SELECT count(*) FROM 'hosts.parquet' WHERE age = 1), 1) AS percent,
    count(*) FILTER (severity = 'fail') AS fails, count(*) FILTER (severity = 'warn') AS warns, min(host) AS example
FROM 'answers.parquet'
WHERE age = 1 AND what = 'finding'
GROUP BY id
ORDER BY fails DESC, warns DESC, hosts DESC, id;
