-- Which findings came or went since the report before? Hosts with two reports or more.
WITH findings AS (
    SELECT DISTINCT host, age, id, device, severity FROM 'answers.parquet' WHERE what = 'finding' AND age <= 2
), compared AS (
    SELECT host FROM 'hosts.parquet' WHERE age = 2
)
SELECT host, id, device, max(severity) AS severity, if(min(age) = 1, 'new', 'gone') AS change
FROM findings SEMI JOIN compared USING (host)
GROUP BY host, id, device
HAVING count(DISTINCT age) = 1
ORDER BY change DESC, host, id, device;
