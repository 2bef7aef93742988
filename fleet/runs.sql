-- Run directories of `rxpath run` and `rxpath capacity`, in runs/HOST/RUN/, into three Parquet files that the queries read:
-- runs.parquet has a row per run, results.parquet a row per metric of a variant, facts.parquet a row per fact of the environment.
-- HOST and RUN are the names of folders: a run of a lab does not name its host, and a copy has the id of its original.
CREATE TEMP TABLE manifests AS
SELECT *, parse_path(filename)[-3] AS host, parse_path(filename)[-2] AS run_id
FROM read_json('runs/*/*/manifest.json', filename = true, maximum_object_size = 33554432, columns = {
    status: 'VARCHAR', version: 'VARCHAR', scenario: 'VARCHAR', started: 'TIMESTAMP', main_metric: 'VARCHAR',
    headline: 'VARCHAR', hosts: 'MAP(VARCHAR, STRUCT(side VARCHAR))',
    trials: 'STRUCT(grade VARCHAR, "void" VARCHAR)[]',
    variants: 'STRUCT("name" VARCHAR, verdict STRUCT(stage VARCHAR, confidence VARCHAR),
        metrics MAP(VARCHAR, STRUCT(median DOUBLE, "min" DOUBLE, "max" DOUBLE, "interval" DOUBLE[])))[]',
    capacity: 'STRUCT(variant VARCHAR, unit VARCHAR, lower_per_s DOUBLE, upper_per_s DOUBLE, regular BOOLEAN,
        limited_by STRUCT(stage VARCHAR))'
});

-- place is `local`, or the alias of one of the hosts between which it ran.
CREATE TEMP TABLE facts AS
SELECT host, run_id, place, fact.key AS fact, fact.value.state AS state, fact.value.value AS value
FROM (
    SELECT parse_path(filename)[-3] AS host, parse_path(filename)[-2] AS run_id, entry.key AS place,
        unnest(map_entries(entry.value)) AS fact
    FROM (
        SELECT filename, unnest(map_entries(hosts)) AS entry
        FROM read_json('runs/*/*/environment.json', filename = true, maximum_object_size = 33554432, columns = {
            hosts: 'MAP(VARCHAR, MAP(VARCHAR, STRUCT(state VARCHAR, "value" JSON)))'
        })
    )
);

-- The kernel is the receiver's. age 1 is the newest complete run of a scenario on a host, 2 the one before. The grade is the worst
-- of the trials that count.
COPY (
    WITH kernels AS (
        SELECT host, run_id, place, json_extract_string(value, '$') AS kernel FROM facts WHERE fact = 'kernel.release'
    )
    SELECT m.host, m.run_id, scenario, started, status, version, k.kernel, headline,
        coalesce(main_metric, 'delivered_pps') AS main_metric,
        list_max(list_transform(list_filter(trials, lambda t: t."void" IS NULL), lambda t: t.grade)) AS worst_grade,
        len(trials) AS trials, len(list_filter(trials, lambda t: t."void" IS NOT NULL)) AS void_trials,
        capacity.unit AS capacity_unit, capacity.lower_per_s, capacity.upper_per_s, capacity.regular AS is_regular,
        capacity.limited_by.stage AS limited_by,
        CASE WHEN status = 'complete' THEN row_number() OVER (
            PARTITION BY m.host, scenario, status = 'complete' ORDER BY started DESC, m.run_id DESC) END AS age
    FROM manifests m LEFT JOIN kernels k ON m.host = k.host AND m.run_id = k.run_id AND k.place = coalesce(
        list_filter(map_entries(m.hosts), lambda e: e.value.side = 'rx')[1].key, 'local')
) TO 'runs.parquet' (FORMAT parquet);

COPY (
    SELECT host, run_id, variant."name" AS variant, variant.verdict.stage AS stage, variant.verdict.confidence AS confidence,
        metric.key AS metric, metric.value.median AS median, metric.value."min" AS least, metric.value."max" AS most,
        metric.value."interval"[1] AS interval_low, metric.value."interval"[2] AS interval_high
    FROM (
        SELECT host, run_id, variant, unnest(map_entries(variant.metrics)) AS metric
        FROM (SELECT host, run_id, unnest(variants) AS variant FROM manifests)
    )
) TO 'results.parquet' (FORMAT parquet);

-- Without what changes by itself (rxpath-core, moving.rs): facts, and counts of processes and traffic within facts.
COPY (
    SELECT host, run_id, place, fact, CASE
        WHEN state <> 'ok' THEN state
        WHEN json_type(value) = 'OBJECT'
            THEN json_merge_patch(value, '{"processes_seen_count": null, "statistics": null}')::VARCHAR
        ELSE value::VARCHAR END AS value
    FROM facts
    WHERE fact NOT IN ('boot.id', 'boot.uptime_s', 'load.average', 'memory.available_bytes',
        'sysctl.net.netfilter.nf_conntrack_count') AND fact NOT LIKE 'time.%'
) TO 'facts.parquet' (FORMAT parquet);
