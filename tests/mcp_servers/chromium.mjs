// Prints where the Chromium that @sparticuz/chromium carries is unpacked to, and the arguments that it runs with.
import chromium from "@sparticuz/chromium";

console.log(JSON.stringify({ path: await chromium.executablePath(), args: chromium.args }));
