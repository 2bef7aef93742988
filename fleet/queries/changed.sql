-- Which settings changed since the report before? Only hosts whose fingerprint changed; `rxpath tune undo` undoes its own.
WITH changed AS (
    SELECT host FROM 'hosts.parquet' WHERE age <= 2 GROUP BY host HAVING count(DISTINCT fingerprint) = 2
), usual AS (
    -- A value that changes on hosts whose settings did not is a counter, not a setting.
    SELECT id FROM 'answers.parquet' ANTI JOIN changed USING (host)
    WHERE age <= 2 AND what <> 'unjudged'
    GROUP BY host, id, device HAVING count(DISTINCT value) = 2
)
SELECT host, id, device, max(value) FILTER (age = 2) AS before, max(value) FILTER (age = 1) AS after
FROM 'answers.parquet' SEMI JOIN changed USING (host) ANTI JOIN usual USING (id)
WHERE age <= 2 AND what <> 'unjudged'
GROUP BY host, id, device
HAVING before IS DISTINCT FROM after
ORDER BY host, id, device;
