const done = []
export class Queue {
  #tasks = new Set()
  add (task) { const entry = { task, addedAt: Date.now() }; this.#tasks.add(entry); return entry }
  finish (entry) { this.#tasks.delete(entry); done.push(entry) }
  get size () { return this.#tasks.size + done.length }
}
