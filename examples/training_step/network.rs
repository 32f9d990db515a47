//! A network of two layers, which learns whether two numbers have the same sign, and its training.

use std::time::{Duration, Instant};

use vkaccel::{Buffer, Generator, Graph, Grid, Kernel, Philox, Result};

/// Points in a batch, each an invocation of the loss's workgroup.
pub const BATCH: usize = 64;
pub const HIDDEN: usize = 32;
/// The part of the hidden layer that the dropout keeps.
pub const KEPT: f32 = 0.9;
pub const RATE: f32 = 0.05;
const MOMENTUM: f32 = 0.9;

/// What came out of a training.
#[derive(Debug)]
pub struct Trained {
    /// Weights and biases of the hidden layer, then of the output.
    pub parameters: [Vec<f32>; 4],
    /// One for each step.
    pub losses: Vec<f32>,
}

/// A network, and all that a step finds in the same place as the one before.
struct Network {
    kernels: Kernels,
    hidden: Layer,
    output: Layer,
    dropout: Generator,
    /// What the points of the batches are made of.
    numbers: Philox,
    inputs: Matrix,
    targets: Buffer<f32>,
    /// How many steps there were, and the loss of each.
    steps: Buffer<u32>,
    losses: Buffer<f32>,
    one: Buffer<f32>,
}

struct Kernels {
    product: Kernel,
    activate: Kernel,
    deactivate: Kernel,
    loss: Kernel,
    update: Kernel,
}

struct Layer {
    weights: Parameter,
    bias: Parameter,
}

/// Numbers that are learned, and how they move.
struct Parameter {
    values: Matrix,
    velocities: Buffer<f32>,
}

/// A matrix, row behind row.
struct Matrix {
    data: Buffer<f32>,
    rows: usize,
    columns: usize,
}

/// A matrix as a factor of a product.
struct Factor<'a> {
    data: &'a Buffer<f32>,
    rows: usize,
    columns: usize,
    /// From one row to the next, and from one column to the next.
    strides: [usize; 2],
}

/// Trains a new network by the calls of each step; says how long all steps took.
pub fn by_calls(steps: usize) -> Result<(Trained, Duration)> {
    let mut network = Network::new(steps)?;
    vkaccel::synchronize(None)?;
    let started = Instant::now();
    for _ in 0..steps {
        network.next_batch()?;
        network.step()?;
    }
    vkaccel::synchronize(None)?;
    let time = started.elapsed();
    Ok((network.trained()?, time))
}

/// The same by replays of one step, which is captured before it was ever called.
pub fn by_replays(steps: usize) -> Result<(Trained, Duration)> {
    let mut network = Network::new(steps)?;
    let mut graph = Graph::new();
    graph.capture(|| network.step())?;
    let started = Instant::now();
    for _ in 0..steps {
        network.next_batch()?;
        graph.replay()?;
    }
    vkaccel::synchronize(None)?;
    let time = started.elapsed();
    Ok((network.trained()?, time))
}

impl Network {
    /// The same one at each call, whose losses have room for so many steps.
    fn new(steps: usize) -> Result<Self> {
        let mut numbers = Philox::new(1);
        Ok(Self {
            kernels: Kernels::new()?,
            hidden: Layer::new(&mut numbers, 2, HIDDEN, 2.0)?,
            output: Layer::new(&mut numbers, HIDDEN, 1, 0.2)?,
            dropout: Generator::new(2, None)?,
            numbers,
            inputs: Matrix::uninit(BATCH, 2)?,
            targets: Buffer::uninit(BATCH)?,
            steps: Buffer::zeroed(1)?,
            losses: Buffer::zeroed(steps)?,
            one: Buffer::from_slice(&[1.0])?,
        })
    }

    /// Puts new points, and what is to be said of them, where the next step finds them.
    fn next_batch(&mut self) -> Result<()> {
        let mut points = [0.0f32; 2 * BATCH];
        self.numbers.fill_uniform(&mut points)?;
        for number in &mut points {
            *number = 2.0 * *number - 1.0;
        }
        let sides = points.chunks_exact(2).map(|xy| (xy[0] * xy[1]).signum());
        let sides: Vec<f32> = sides.collect();
        self.inputs.data.write(&points)?;
        self.targets.write(&sides)
    }

    /// One step of the training: the way forward, the way back, and the update.
    fn step(&self) -> Result<()> {
        let Self {
            kernels,
            hidden,
            output,
            inputs,
            ..
        } = self;
        let mask = Buffer::uninit(BATCH * HIDDEN)?;
        self.dropout.fill_bernoulli(&mask, f64::from(KEPT))?;

        let active = self.product(inputs.as_it_is(), hidden.weights.as_it_is())?;
        let bias = &hidden.bias.values.data;
        active.each(&kernels.activate, bias, &mask)?;
        let result = self.product(active.as_it_is(), output.weights.as_it_is())?;
        self.loss(&result)?;

        // `result` is the gradient of the loss by now.
        let back = self.product(result.as_it_is(), output.weights.transposed())?;
        back.each(&kernels.deactivate, &active.data, &mask)?;

        self.learn(output, &active, &result)?;
        self.learn(hidden, inputs, &back)
    }

    /// Notes the loss of the results, and makes its gradient of them.
    fn loss(&self, results: &Matrix) -> Result<()> {
        let bias = &self.output.bias.values.data;
        let (steps, losses) = (&self.steps, &self.losses);
        let args = (&results.data, bias, &self.targets, steps, losses);
        self.kernels.loss.launch(Grid::groups(1), args)
    }

    /// Moves a layer by the gradient behind it.
    fn learn(&self, layer: &Layer, inputs: &Matrix, gradient: &Matrix) -> Result<()> {
        let of_weights = self.product(inputs.transposed(), gradient.as_it_is())?;
        let ones = Factor {
            data: &self.one,
            rows: 1,
            columns: BATCH,
            strides: [0, 0],
        };
        let of_bias = self.product(ones, gradient.as_it_is())?;
        for (parameter, gradient) in [(&layer.weights, of_weights), (&layer.bias, of_bias)] {
            let (values, n) = (&parameter.values.data, gradient.data.len());
            let args = (
                values,
                &parameter.velocities,
                &gradient.data,
                RATE,
                MOMENTUM,
                n,
            );
            self.kernels.update.launch(Grid::elements(n), args)?;
        }
        Ok(())
    }

    fn product(&self, a: Factor<'_>, b: Factor<'_>) -> Result<Matrix> {
        let product = Matrix::uninit(a.rows, b.columns)?;
        let (c, columns) = (&product.data, b.columns);
        let ([a_row, a_column], [b_row, b_column]) = (a.strides, b.strides);
        let grid = Grid::elements([columns, a.rows]);
        let args = (
            a.data, b.data, c, a.rows, a.columns, columns, a_row, a_column, b_row, b_column,
        );
        self.kernels.product.launch(grid, args)?;
        Ok(product)
    }

    fn trained(&self) -> Result<Trained> {
        let values = |parameter: &Parameter| parameter.values.data.to_vec();
        let Self { hidden, output, .. } = self;
        Ok(Trained {
            parameters: [
                values(&hidden.weights)?,
                values(&hidden.bias)?,
                values(&output.weights)?,
                values(&output.bias)?,
            ],
            losses: self.losses.to_vec()?,
        })
    }
}

impl Trained {
    /// Whether both have the same numbers, bit for bit.
    pub fn is_same(&self, other: &Self) -> bool {
        self.bits() == other.bits()
    }

    fn bits(&self) -> Vec<u32> {
        let all = self.parameters.iter().chain([&self.losses]).flatten();
        all.map(|number| number.to_bits()).collect()
    }

    /// The part of new points that the network is right about, computed on the CPU.
    pub fn part_right(&self) -> Result<f64> {
        let mut points = [0.0f32; 2000];
        Philox::new(3).fill_uniform(&mut points)?;
        let points = points
            .chunks_exact(2)
            .map(|xy| [2.0 * xy[0] - 1.0, 2.0 * xy[1] - 1.0]);
        let right = points.filter(|&[x, y]| self.says(x, y) * x * y > 0.0);
        Ok(right.count() as f64 / 1000.0)
    }

    /// What the network says of two numbers; nothing is dropped out.
    fn says(&self, x: f32, y: f32) -> f32 {
        let [weights, bias, out_weights, out_bias] = &self.parameters;
        let (of_x, of_y) = weights.split_at(HIDDEN);
        let hidden = (0..HIDDEN).map(|unit| (x * of_x[unit] + y * of_y[unit] + bias[unit]).tanh());
        hidden
            .zip(out_weights)
            .map(|(active, weight)| active * weight)
            .sum::<f32>()
            + out_bias[0]
    }
}

impl Kernels {
    fn new() -> Result<Self> {
        let kernel = |file, source| Kernel::builder(source).file(file).build();
        Ok(Self {
            product: kernel("product.comp", include_str!("product.comp"))?,
            activate: kernel("activate.comp", include_str!("activate.comp"))?,
            deactivate: kernel("deactivate.comp", include_str!("deactivate.comp"))?,
            loss: kernel("loss.comp", include_str!("loss.comp"))?,
            update: kernel("update.comp", include_str!("update.comp"))?,
        })
    }
}

impl Layer {
    fn new(numbers: &mut Philox, inputs: usize, outputs: usize, deviation: f32) -> Result<Self> {
        let mut weights = vec![0.0; inputs * outputs];
        numbers.fill_normal(&mut weights, 0.0, deviation)?;
        Ok(Self {
            weights: Parameter::new(&weights, inputs)?,
            bias: Parameter::new(&vec![0.0; outputs], 1)?,
        })
    }
}

impl Parameter {
    fn new(values: &[f32], rows: usize) -> Result<Self> {
        Ok(Self {
            values: Matrix {
                data: Buffer::from_slice(values)?,
                rows,
                columns: values.len() / rows,
            },
            velocities: Buffer::zeroed(values.len())?,
        })
    }

    fn as_it_is(&self) -> Factor<'_> {
        self.values.as_it_is()
    }

    fn transposed(&self) -> Factor<'_> {
        self.values.transposed()
    }
}

impl Matrix {
    fn uninit(rows: usize, columns: usize) -> Result<Self> {
        Ok(Self {
            data: Buffer::uninit(rows * columns)?,
            rows,
            columns,
        })
    }

    fn as_it_is(&self) -> Factor<'_> {
        Factor {
            data: &self.data,
            rows: self.rows,
            columns: self.columns,
            strides: [self.columns, 1],
        }
    }

    fn transposed(&self) -> Factor<'_> {
        Factor {
            data: &self.data,
            rows: self.columns,
            columns: self.rows,
            strides: [1, self.columns],
        }
    }

    /// Changes each number by a kernel that also takes another buffer, and the dropout.
    fn each(&self, kernel: &Kernel, other: &Buffer<f32>, mask: &Buffer<f32>) -> Result<()> {
        let n = self.data.len();
        kernel.launch(Grid::elements(n), (&self.data, other, mask, KEPT, n))
    }
}
