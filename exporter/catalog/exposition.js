'use strict'

/**
 * Text formats of Prometheus, byte for byte equal to the output of prom-client, except for NaN.
 * Sources: https://prometheus.io/docs/instrumenting/exposition_formats/ and
 * https://prometheus.io/docs/specs/om/open_metrics_spec/.
 *
 * @typedef {import('./metric').Buckets} Buckets
 * @typedef {import('./metric').HistogramRow} HistogramRow
 *
 * @typedef {object} TextFormat
 * @property {string} contentType
 * @property {string} separator text between two families
 * @property {string} end text after the last family
 * @property {boolean} isOpenMetrics
 *
 * @typedef {object} Bucket
 * @property {string} label
 * @property {number} end index of the first count above the bound
 */

/** @type {Readonly<Record<'prometheus' | 'openMetrics', Readonly<TextFormat>>>} */
const formats = Object.freeze({
  prometheus: {
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    separator: '\n',
    end: '',
    isOpenMetrics: false
  },
  openMetrics: {
    contentType: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
    separator: '',
    end: '# EOF\n',
    isOpenMetrics: true
  }
})

/** @param {string} text */
const escapeHelp = text => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')

/** @param {string} text */
const escapeLabelValue = text => /["\\\n]/.test(text)
  ? escapeHelp(text).replaceAll('"', '\\"')
  : text

/**
 * @param {import('./metric').Labels} labels
 * @returns {string} labels, such as `name="value",other="value"`; empty without labels
 */
function formatLabels (labels) {
  let text = ''
  for (const name in labels) {
    text += (text === '' ? '' : ',') + name + '="' + escapeLabelValue(String(labels[name])) + '"'
  }
  return text
}

/**
 * prom-client prints `Nan`. The formats and Go spell it NaN.
 * @param {number} value
 */
function formatValue (value) {
  if (Number.isFinite(value)) return String(value)
  if (value === Infinity) return '+Inf'
  return value === -Infinity ? '-Inf' : 'NaN'
}

/**
 * @param {string} name
 * @param {string} own labels of this sample only
 * @param {string} shared labels
 * @param {number} value
 */
function formatSample (name, own, shared, value) {
  if (own === '' && shared === '') return name + ' ' + formatValue(value) + '\n'
  const separator = own === '' || shared === '' ? '' : ','
  return name + '{' + own + separator + shared + '} ' + formatValue(value) + '\n'
}

/**
 * @param {Buckets} buckets
 * @returns {Bucket[]} the exposed bounds and +Inf, each with its end index
 */
const selectBuckets = ({ bounds, exposed }) => [
  ...exposed.map(bound => ({ label: `le="${bound}"`, end: bounds.indexOf(bound) + 1 })),
  { label: 'le="+Inf"', end: bounds.length + 1 }
]

/** A metric family: two lines that describe the metric, then one line for each sample. */
class Family {
  #name
  /** @type {Bucket[]} */
  #buckets

  /**
   * @param {{ name: string, type: string, help: string, histogram?: Buckets }} row
   * @param {TextFormat} format
   */
  constructor ({ name, type, help, histogram }, { isOpenMetrics }) {
    // OpenMetrics names a counter without the suffix that its samples have.
    const isCounter = isOpenMetrics && type === 'counter'
    const metricName = isCounter ? name.replace(/_total$/, '') : name
    this.#name = isCounter ? `${metricName}_total` : name
    this.#buckets = histogram === undefined ? [] : selectBuckets(histogram)
    this.head = `# HELP ${metricName} ${escapeHelp(help)}\n# TYPE ${metricName} ${type}\n`
  }

  /**
   * @param {import('./metric').Reading} reading
   * @param {string} [shared] formatLabels() of the labels that all samples share
   * @returns {string} one line for each sample; empty without samples
   */
  lines (reading, shared = '') {
    if (reading === undefined) return ''
    if (typeof reading === 'number') return formatSample(this.#name, '', shared, reading)
    let text = ''
    for (const row of reading) {
      const own = row.labels === undefined ? '' : formatLabels(row.labels)
      text += 'counts' in row
        ? this.#histogramLines(row, own, shared)
        : formatSample(this.#name, own, shared, row.value)
    }
    return text
  }

  /**
   * @param {HistogramRow} row
   * @param {string} own
   * @param {string} shared
   */
  #histogramLines ({ counts, sum }, own, shared) {
    const begin = this.#name + '_bucket{' + own + (own === '' ? '' : ',')
    const end = (shared === '' ? '' : ',') + shared + '} '
    let text = ''
    let count = 0
    let next = 0
    for (const bucket of this.#buckets) {
      while (next < bucket.end) count += counts[next++]
      text += begin + bucket.label + end + formatValue(count) + '\n'
    }
    return text +
      formatSample(this.#name + '_sum', own, shared, sum) +
      formatSample(this.#name + '_count', own, shared, count)
  }
}

module.exports = { formats, formatLabels, Family }
