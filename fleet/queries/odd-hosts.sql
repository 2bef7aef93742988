-- Which hosts are set unlike the others of their kind? By the fingerprint of all settings.
WITH counted AS (
    SELECT host, kind, fingerprint, version,
        count(*) OVER (PARTITION BY kind, fingerprint) AS same, count(*) OVER (PARTITION BY kind) AS hosts
    FROM 'hosts.parquet'
    WHERE age = 1
)
SELECT host, kind, left(fingerprint, 12) AS fingerprint, same, hosts, version
FROM counted
WHERE same * 2 <= hosts AND hosts > 2
ORDER BY same, host;
