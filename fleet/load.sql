-- Reports of `rxpath check --format ndjson`, in reports/*.ndjson, into two Parquet files that the queries read:
-- hosts.parquet has a row per report, answers.parquet a row per answer of it.
CREATE TEMP TABLE reports AS
FROM read_ndjson('reports/*.ndjson', filename = true, maximum_object_size = 4194304, columns = {
    host: 'VARCHAR', time: 'TIMESTAMP', boot_id: 'VARCHAR', version: 'VARCHAR', fingerprint: 'VARCHAR',
    settings: 'STRUCT(kernel VARCHAR, goal VARCHAR)',
    result: 'STRUCT(
        findings STRUCT(id VARCHAR, device VARCHAR, severity VARCHAR, observed VARCHAR, expected VARCHAR)[],
        records STRUCT(id VARCHAR, device VARCHAR, "text" VARCHAR)[],
        fine STRUCT(id VARCHAR, device VARCHAR, "text" VARCHAR)[],
        unjudged STRUCT(id VARCHAR, device VARCHAR, reason VARCHAR, "text" VARCHAR)[],
        nics STRUCT(device VARCHAR, driver VARCHAR, firmware VARCHAR)[])'
});
-- A host that made no report in between gave the same one on two days: it counts once.
DELETE FROM reports AS again WHERE EXISTS (
    FROM reports AS first WHERE first.host = again.host AND first.time = again.time AND first.filename < again.filename
);

-- Hosts are alike when their NICs have the same drivers and firmware under the same kernel.
COPY (
    SELECT host, time, boot_id, version, fingerprint, settings.kernel AS kernel, settings.goal AS goal,
        concat_ws(' ', settings.kernel, array_to_string(list_sort(list_transform(result.nics,
            lambda nic: concat_ws(' ', nic.driver, nullif(nic.firmware, '')))), ', '))
            AS kind,
        dense_rank() OVER (PARTITION BY host ORDER BY time DESC) AS age
    FROM reports
) TO 'hosts.parquet' (FORMAT parquet);

-- age 1 is the newest report of a host, 2 the one before.
COPY (
    SELECT host, time, dense_rank() OVER (PARTITION BY host ORDER BY time DESC) AS age, answer.*
    FROM (
        SELECT host, time, unnest(
            list_transform(result.findings, lambda a: {what: 'finding', id: a.id, device: a.device,
                severity: a.severity, value: a.observed})
            || list_transform(result.records, lambda a: {what: 'record', id: a.id, device: a.device,
                severity: NULL::VARCHAR, value: a."text"})
            || list_transform(result.fine, lambda a: {what: 'fine', id: a.id, device: a.device,
                severity: NULL::VARCHAR, value: a."text"})
            || list_transform(result.unjudged, lambda a: {what: 'unjudged', id: a.id, device: a.device,
                severity: NULL::VARCHAR, value: a.reason})
        ) AS answer
        FROM reports
    )
) TO 'answers.parquet' (FORMAT parquet);
