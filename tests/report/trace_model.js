// trace_model.js PACKAGE FILE: what the importer of Chromium's trace viewer makes of a trace: a line for each counter
// ("process: counter points highest"), and for each thread ("process: thread slices deepest")
const [dir, file] = process.argv.slice(2), lib = dir + "/lib/", tracing = lib + "third_party/tracing/";
require(lib + "global-config.js").enable();
for (const part of ["importer/import.js", "extras/importer/trace_event_importer.js", "extras/rail/rail_score.js",
                    "extras/rail/rail_ir_finder.js"])
    require(tracing + part);
require(lib + "tracing-config.js");
const options = new tr.importer.ImportOptions(), model = new tr.Model(), lines = [];
options.showImportWarnings = options.shiftWorldToZero = options.pruneEmptyContainers = false;
new tr.importer.Import(model, options).importTraces([require("fs").readFileSync(file, "utf8")]);
for (const warning of model.importWarnings)
    lines.push("warning: " + warning.message);
for (const process of model.getAllProcesses()) {
    for (const counter of Object.values(process.counters))
        for (const series of counter.series)
            lines.push(`${process.name}: ${counter.name} ${series.name} ${series.samples.length} ` +
                       `${Math.max(...series.samples.map(sample => sample.value))}`);
    for (const thread of Object.values(process.threads))
        lines.push(`${process.name}: ${thread.name} ${thread.sliceGroup.slices.length} slices, ` +
                   `${Math.max(0, ...thread.sliceGroup.topLevelSlices.map(slice => slice.descendentSlices ?
                   slice.descendentSlices.length : 0))} below one`);
    lines.push(`${process.name}: ${process.instantEvents.length} instants`);
}
console.log(lines.sort().join("\n"));
