// The two modules of the package, written to a folder: node build.js FOLDER.  Equal sources give equal bytes.
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";
import { minify } from "terser";

// The second module takes what it needs from the other module, so that both hold one DeviceError.
const external = ["node:*", "./device.js"];
const folder = process.argv[2];
mkdirSync(folder, { recursive: true });
for (const name of ["device", "node"]) {
  const entryPoints = [fileURLToPath(new URL(`src/${name}.ts`, import.meta.url))];
  const bundled = await build({ entryPoints, bundle: true, write: false, format: "esm", target: "es2022", external });
  const compress = { passes: 3, ecma: 2020, unsafe_arrows: true, pure_getters: true, unsafe_comps: true, sequences: false };
  const { code } = await minify(bundled.outputFiles[0].text, { module: true, compress });
  writeFileSync(`${folder}/${name}.js`, code + "\n");
}
