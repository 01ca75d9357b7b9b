// Starts `ptx-lint --lsp` when a PTX file is opened.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function activate() {
  const command = workspace.getConfiguration("ptx").get("command");
  const server = { command, args: ["--lsp"] };
  client = new LanguageClient("ptx", "PTX", server, { documentSelector: [{ language: "ptx" }] });
  return client.start();
}

function deactivate() {
  return client ? client.stop() : undefined;
}

module.exports = { activate, deactivate };
