// The modules of the package and its program, written to a folder: node build.js FOLDER.  Equal sources give equal bytes.
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";
import { minify } from "terser";

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
// The program stands alone, made of the sources and not of what was built of them before.
const sources = {
  name: "sources",
  setup: ({ onResolve }) => onResolve({ filter: /^\.\/dist\/\w+\.js$/ }, ({ path }) => ({ path: here(`src/${path.slice(7, -3)}.ts`) })),
};
const made = {
  "device.js": { entryPoints: [here("src/device.ts")] },
  // These take what they need from the first module, so that all hold one DeviceError.
  "people.js": { entryPoints: [here("src/people.ts")], external: ["./device.js"] },
  "node.js": { entryPoints: [here("src/node.ts")], external: ["node:*", "./device.js"] },
  "lines.mjs": { entryPoints: [here("lines.js")], external: ["node:*"], plugins: [sources] },
};
const folder = process.argv[2];
mkdirSync(folder, { recursive: true });
for (const [name, how] of Object.entries(made)) {
  const bundled = await build({ ...how, bundle: true, write: false, format: "esm", target: "es2022" });
  const compress = { passes: 3, ecma: 2020, unsafe_arrows: true, pure_getters: true, unsafe_comps: true, sequences: false };
  const { code } = await minify(bundled.outputFiles[0].text, { module: true, compress });
  writeFileSync(`${folder}/${name}`, code + "\n");
}
