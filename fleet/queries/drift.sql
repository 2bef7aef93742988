-- Which value differs from that of most hosts of its kind? Counters have no value that most hosts share, so they drop out.
WITH newest AS (
    SELECT a.host, h.kind, a.id, a.device, a.value
    FROM 'answers.parquet' a JOIN 'hosts.parquet' h ON a.host = h.host AND a.age = 1 AND h.age = 1
    WHERE a.what IN ('record', 'fine', 'finding')
), counted AS (
    SELECT *, count(*) OVER (PARTITION BY kind, id, device, value) AS same,
        count(*) OVER (PARTITION BY kind, id, device) AS hosts
    FROM newest
), usual AS (
    SELECT DISTINCT kind, id, device, value AS usual_value FROM counted WHERE same * 2 > hosts AND hosts > 2
)
SELECT c.host, c.id, c.device, c.value, u.usual_value, c.same, c.hosts
FROM counted c JOIN usual u ON c.kind = u.kind AND c.id = u.id AND c.device IS NOT DISTINCT FROM u.device
WHERE c.value <> u.usual_value
ORDER BY c.host, c.id, c.device;
